#include "runner/communicators/rendezvous.h"

#include <unistd.h>

#include <map>

#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep::runner {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<WorkerEnvironment> read(const Variables& variables, bool launched = false) {
  return worker_environment(
      [&variables](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      launched);
}

const Variables kTorchrun{{"RANK", "3"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "10.0.0.1"},
                          {"MASTER_PORT", "29500"}};

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

}  // namespace

TEST_CASE("torchrun's variables describe a worker") {
  const auto worker = read(kTorchrun);
  REQUIRE(worker);
  CHECK(worker->rank == 3);
  CHECK(worker->world_size == 4);
  CHECK(worker->local_rank == 1);
  CHECK(worker->local_size == 2);
  CHECK(worker->master_address == "10.0.0.1");
  CHECK(worker->master_port == 29500);
  CHECK(worker->listen_fd == -1);
}

TEST_CASE("mpirun's and srun's ranks serve where torchrun's are missing") {
  const Variables master{{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "1234"}};
  Variables mpi = master;
  mpi.insert({{"OMPI_COMM_WORLD_RANK", "1"},
              {"OMPI_COMM_WORLD_SIZE", "2"},
              {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
              {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  CHECK(read(mpi)->rank == 1);
  CHECK(read(mpi)->local_size == 1);
  Variables slurm = master;
  slurm.insert({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}});
  CHECK(read(slurm)->rank == 5);
  CHECK(read(slurm)->local_rank == 1);
}

TEST_CASE("Without a launcher there is no worker, and one worker needs no master") {
  CHECK_FALSE(read({}));
  CHECK_FALSE(read({{"MASTER_ADDR", "node0"}, {"WORLD_SIZE", "2"}}));
  const Variables one{{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  CHECK_FALSE(read(one));  // who starts workers itself
  CHECK_FALSE(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}));
  CHECK(read(one, /*launched=*/true)->world_size == 1);
}

TEST_CASE("Variables that cannot be are refused by name") {
  const auto refuses = [](const Variables& variables, const std::string& name) {
    CHECK_THROWS_AS(read(variables), InputError);
    CHECK_THROWS_WITH(read(variables), Contains(name));
  };
  refuses(without(kTorchrun, "WORLD_SIZE"), "WORLD_SIZE");
  refuses(without(kTorchrun, "MASTER_ADDR"), "MASTER_ADDR");
  refuses(without(kTorchrun, "MASTER_PORT"), "MASTER_PORT");
  refuses(with(kTorchrun, "RANK", "4"), "RANK");
  refuses(with(kTorchrun, "RANK", "-1"), "RANK");
  refuses(with(kTorchrun, "RANK", "two"), "RANK");
  refuses(with(kTorchrun, "RANK", ""), "RANK");
  refuses(with(kTorchrun, "MASTER_PORT", "70000"), "70000");
}

TEST_CASE("A port in use is said, and a free one is found") {
  int port = 0;
  const int fd = listen_on("127.0.0.1", port);
  REQUIRE(port > 0);
  CHECK_THROWS_WITH(listen_on("127.0.0.1", port), Contains("in use"));
  CHECK_THROWS_AS(listen_on("127.0.0.1", port), RunError);
  close(fd);
}

}  // namespace lockstep::runner

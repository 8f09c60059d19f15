// What goes wrong on real machines: workers that die or hang, full disks, ports that are taken.
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "runner/communicators/rendezvous.h"
#include "runner/measure/visit_record.h"
#include "sim/records/measurement.h"
#include "sim/records/run.h"
#include "tests/catch.h"
#include "tests/runner/made_up.h"
#include "tests/runner/process.h"

namespace lockstep::runner {
namespace {

namespace fs = std::filesystem;
using testing::MeasureProcess;
using testing::slurp;
using testing::TemporaryFolder;
using testing::wait_for;

using Words = std::vector<std::string>;

int free_port() {
  int port = 0;
  close(listen_on("127.0.0.1", port));
  return port;
}

/// Workers as torchrun starts them; nobody watches over them from outside.
class Group {
 public:
  Group(const TemporaryFolder& folder, int size, const std::string& address, const Words& more = {})
      : out_(folder.file("out")) {
    const int port = free_port();
    Words words = testing::replay(folder, {"--steps", "1000"});
    words.insert(words.end(), more.begin(), more.end());
    for (int rank = 0; rank < size; ++rank) {
      const testing::Variables variables{{"RANK", std::to_string(rank)},
                                         {"WORLD_SIZE", std::to_string(size)},
                                         {"LOCAL_RANK", std::to_string(rank)},
                                         {"LOCAL_WORLD_SIZE", std::to_string(size)},
                                         {"MASTER_ADDR", address},
                                         {"MASTER_PORT", std::to_string(port)},
                                         {"OMP_WAIT_POLICY", "passive"}};
      workers_.push_back(std::make_unique<MeasureProcess>(folder, words, variables,
                                                          "rank" + std::to_string(rank)));
    }
  }
  MeasureProcess& rank(int rank) { return *workers_.at(static_cast<std::size_t>(rank)); }
  /// All have measured something together.
  bool measures() const {
    const std::string file = visit_file(out_);
    return fs::exists(file) && !read_visit(file).done.empty();
  }
  /// How it ends for one that others left.
  void check_names(int rank, int culprit) {
    MeasureProcess& process = *workers_.at(static_cast<std::size_t>(rank));
    CHECK(process.exit_code() == 3);
    INFO(process.errors());
    CHECK(process.one_error_line());
    CHECK_THAT(process.errors(), Contains("rank " + std::to_string(culprit) + " has not answered"));
    if (rank == 0) CHECK_THAT(process.errors(), Contains("is kept in " + out_));
  }

 private:
  std::string out_;
  std::vector<std::unique_ptr<MeasureProcess>> workers_;
};

/// Addresses on which a process listens, by the kernel's own table.
std::set<std::string> listening(pid_t pid) {
  std::vector<std::string> inodes;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone)) {
    const std::string target = fs::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:[")) inodes.push_back(target.substr(8, target.size() - 9));
  }
  std::set<std::string> addresses;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::string slot, local, remote, state, inode, skipped;
      fields >> slot >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> inode;
      if (state == "0A" && std::ranges::find(inodes, inode) != inodes.end()) {
        addresses.insert(local.substr(0, local.find(':')));
      }
    }
  }
  return addresses;
}

}  // namespace

TEST_CASE("Every rank names the one that was killed or hangs") {
  const TemporaryFolder of_killed, of_first, of_second;
  const Words patience{"--silence", "8"};
  // At the same time, since it is all waiting.
  Group killed(of_killed, 3, "127.0.0.1", patience);
  Group first_hangs(of_first, 2, "127.0.0.1", patience);  // which serves the rendezvous
  Group second_hangs(of_second, 2, "127.0.0.1", patience);
  wait_for("pieces",
           [&] { return killed.measures() && first_hangs.measures() && second_hangs.measures(); });
  killed.rank(1).signal(SIGKILL);
  first_hangs.rank(0).signal(SIGSTOP);
  second_hangs.rank(1).signal(SIGSTOP);
  killed.check_names(0, 1);
  killed.check_names(2, 1);
  first_hangs.check_names(1, 0);
  second_hangs.check_names(0, 1);
  CHECK(read_runs(of_killed.file("out/runs.json")).size() == 1);
  CHECK(read_runs(of_second.file("out/runs.json")).size() == 1);
}

TEST_CASE("Workers listen only where the user said, and what is measured before one dies is kept") {
  const TemporaryFolder alone, grouped;
  const std::string visit = visit_file(alone.file("out"));
  MeasureProcess process(alone, testing::replay(alone, {"--workers", "2", "--steps", "1000"}));
  Group group(grouped, 2, "127.0.0.2");
  const pid_t first = testing::wait_for_worker(process.pid(), 0);
  std::set<std::string> launched, named;  // Gloo's own are there for a moment only
  wait_for("pieces", [&] {
    launched.merge(listening(first));
    named.merge(listening(group.rank(0).pid()));
    return group.measures() && fs::exists(visit) && !read_visit(visit).done.empty();
  });
  CHECK(launched == std::set<std::string>{"0100007F"});
  CHECK(named.contains("0200007F"));
  for (const std::string& address : named) CHECK(address.ends_with("00007F"));

  kill(testing::wait_for_worker(process.pid(), 1), SIGKILL);
  CHECK(process.exit_code() == 3);
  CHECK(process.one_error_line());
  CHECK_THAT(process.errors(), Contains("rank 1 was killed by signal 9") && Contains("is kept in"));
  CHECK(read_runs(alone.file("out/runs.json")).size() == 1);
}

TEST_CASE("Beside Horovod's threads, too, the one that was killed or hangs is named") {
  const TemporaryFolder of_killed, of_hanging;
  const auto words = [](const TemporaryFolder& folder) {
    Words all = testing::replay(folder, {"--workers", "2", "--steps", "1000", "--silence", "8"});
    std::ranges::replace(all, "ddp", "horovod");
    return all;
  };
  const auto measures = [](const TemporaryFolder& folder) {
    const std::string visit = visit_file(folder.file("out"));
    return fs::exists(visit) && !read_visit(visit).done.empty();
  };
  MeasureProcess killed(of_killed, words(of_killed));
  MeasureProcess hangs(of_hanging, words(of_hanging));
  wait_for("pieces", [&] { return measures(of_killed) && measures(of_hanging); });
  kill(testing::wait_for_worker(killed.pid(), 1), SIGKILL);
  kill(testing::wait_for_worker(hangs.pid(), 1), SIGSTOP);
  CHECK(killed.exit_code() == 3);
  CHECK_THAT(killed.errors(), Contains("rank 1 was killed by signal 9"));
  CHECK(hangs.exit_code() == 3);
  CHECK_THAT(hangs.errors(), Contains("rank 1 has not moved for 8 s"));
  CHECK(read_runs(of_killed.file("out/runs.json")).size() == 1);
}

TEST_CASE("A port that is taken is said in one line") {
  const TemporaryFolder folder;
  int port = 0;
  const int fd = listen_on("127.0.0.1", port);
  MeasureProcess process(folder, {"-o", folder.file("out")},
                         {{"RANK", "0"},
                          {"WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", std::to_string(port)}});
  CHECK(process.exit_code() == 3);
  CHECK(process.one_error_line());
  CHECK_THAT(process.errors(),
             Contains("cannot listen on 127.0.0.1:" + std::to_string(port)) && Contains("in use"));
  close(fd);
}

TEST_CASE("A disk that gets full loses nothing that was written before") {
  const TemporaryFolder folder;
  const std::string out = folder.file("out"), kept = folder.file("kept");
  const std::string space = geteuid() == 0 ? "unshare -m" : "unshare -rm";
  if (std::system((space + " sh -c 'mount -t tmpfs none /mnt' 2>/dev/null").c_str()) != 0) {
    WARN("no file system can be mounted here: not tested");
    return;
  }
  // In a name space of its own: the mount goes with it. It fills once something was measured.
  const std::string script =
      "mkdir -p " + out + " && mount -t tmpfs -o size=2m none " + out + " || exit 9\n" +
      "(until grep -q took_ns " + out + "/visit.json 2>/dev/null; do sleep 0.02;" +
      " done; cat /dev/zero >" + out + "/filler 2>/dev/null) &\n" + LOCKSTEP_MEASURE_BINARY +
      " --compute replay --calibration " + testing::made_up_calibration(folder) +
      " --model one_layer --batch 4,8 --workers 2 --steps 20 --strategies ddp -o " + out + " 2>" +
      folder.file("err") + "\ncode=$?\nrm -f " + out + "/filler; cp -r " + out + " " + kept +
      "\nexit $code\n";
  testing::spill(folder.file("script"), script);
  const int status = std::system((space + " sh " + folder.file("script")).c_str());
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);
  const std::string errors = slurp(folder.file("err"));
  INFO(errors);
  CHECK(std::ranges::count(errors, '\n') == 1);
  CHECK_THAT(errors, Contains("No space left on device") && Contains("kept in"));
  const VisitRecord record = read_visit(visit_file(kept));
  REQUIRE_FALSE(record.done.empty());
  for (const PieceDone& piece : record.done) {
    for (const char* rank : {"0", "1"}) {
      const std::string part = kept + "/parts/repeat" + std::to_string(piece.repeat) + "-" +
                               piece.piece + "-rank" + rank;
      CHECK_FALSE(read_measurement(part + ".measurement.json").id.empty());
      CHECK(read_runs(part + ".runs.json").size() == 1);
    }
  }
}

}  // namespace lockstep::runner

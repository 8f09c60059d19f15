#include "runner/communicators/rendezvous.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "runner/communicators/lost_peers.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

/// A launcher's names for the same four numbers; the last two may be missing.
struct Variables {
  const char *rank, *world_size, *local_rank, *local_size;
};
constexpr std::array kLaunchers{
    Variables{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    Variables{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
              "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Variables{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

int number(const Getenv& getenv, const char* name, std::optional<int> otherwise = {}) {
  const char* text = getenv(name);
  if (text == nullptr) {
    if (otherwise) return *otherwise;
    throw InputError({}, name, "is not set", "launchers such as torchrun set it");
  }
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 0) {
    throw InputError({}, name, fmt::format("\"{}\" is not a number", text), "0 or more");
  }
  return value;
}

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

void resolve(const std::string& host, AddressList& list) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list.first); error != 0) {
    throw RunError(fmt::format("cannot resolve {}: {}", host, gai_strerror(error)));
  }
}

void set_port(sockaddr* address, int port) {
  const auto network = htons(static_cast<std::uint16_t>(port));
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = network;
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = network;
  }
}

class TcpStore final : public Store {
 public:
  TcpStore(const std::string& host, const c10d::TCPStoreOptions& options)
      : store_(c10::make_intrusive<c10d::TCPStore>(host, options)) {}

  void set(const std::string& key, const std::string& value) override {
    store_->set(key, {value.begin(), value.end()});
  }

  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    try {
      store_->wait({key}, timeout);
      const std::vector<std::uint8_t> value = store_->get(key);
      return {value.begin(), value.end()};
    } catch (const std::exception&) {
      throw LostPeers(
          fmt::format("waited {} s for another worker ({})", timeout.count() / 1000, key));
    }
  }

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

std::optional<WorkerEnvironment> worker_environment(const Getenv& getenv, bool launched) {
  for (const Variables& names : kLaunchers) {
    if (getenv(names.rank) == nullptr) continue;
    WorkerEnvironment found;
    found.rank = number(getenv, names.rank);
    found.world_size = number(getenv, names.world_size);
    found.local_rank = number(getenv, names.local_rank, found.rank);
    found.local_size = number(getenv, names.local_size, found.world_size);
    if (found.rank >= found.world_size) {
      throw InputError({}, names.rank, fmt::format("rank {} of {}", found.rank, found.world_size),
                       "ranks count from 0");
    }
    if (found.world_size == 1 && !launched) return std::nullopt;
    if (found.world_size > 1) {
      const char* address = getenv("MASTER_ADDR");
      if (address == nullptr) {
        throw InputError({}, "MASTER_ADDR", "is not set", "the address of rank 0's host");
      }
      found.master_address = address;
      found.master_port = number(getenv, "MASTER_PORT");
      if (found.master_port < 1 || found.master_port > 65535) {
        throw InputError({}, "MASTER_PORT", fmt::format("there is no port {}", found.master_port));
      }
    }
    found.listen_fd = number(getenv, "LOCKSTEP_LISTEN_FD", -1);
    return found;
  }
  return std::nullopt;
}

int listen_on(const std::string& address, int& port) {
  AddressList list;
  resolve(address, list);
  sockaddr* target = list.first->ai_addr;
  set_port(target, port);
  const int fd = socket(list.first->ai_family, SOCK_STREAM, 0);
  const int yes = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (fd < 0 || bind(fd, target, list.first->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0) {
    const std::string reason = std::strerror(errno);
    if (fd >= 0) close(fd);
    throw RunError(fmt::format("cannot listen on {}:{}: {}", address, port, reason));
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
  port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                           : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return fd;
}

bool torchrun_serves_store() {
  const char* says = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  return says != nullptr && std::string_view(says) == "True";
}

std::shared_ptr<Store> meet(const WorkerEnvironment& environment,
                            std::chrono::milliseconds timeout) {
  // What goes wrong with its sockets is said by whoever it stops, in one line.
  FLAGS_caffe2_log_level = std::max<int>(FLAGS_caffe2_log_level, c10::GLOG_ERROR);
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(environment.master_port);
  options.isServer = environment.rank == 0 && !torchrun_serves_store();
  options.numWorkers = static_cast<std::size_t>(environment.world_size);
  options.timeout = timeout;
  if (options.isServer) {
    // Left alone the store listens on every address; it is to listen where the user said.
    int port = environment.master_port;
    options.masterListenFd = environment.listen_fd >= 0
                                 ? environment.listen_fd
                                 : listen_on(environment.master_address, port);
  }
  try {
    return std::make_shared<TcpStore>(environment.master_address, options);
  } catch (const std::exception& error) {
    const std::string_view what = error.what();
    throw LostPeers(fmt::format("the workers do not meet at {}:{} within {} s: {}",
                                environment.master_address, environment.master_port,
                                timeout.count() / 1000, what.substr(0, what.find('\n'))));
  }
}

}  // namespace lockstep::runner

#include "runner/measure/server_process.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "runner/communicators/gloo.h"
#include "runner/measure/device.h"
#include "runner/measure/progress.h"
#include "runner/measure/watch.h"
#include "runner/measure/watched.h"
#include "runner/strategies/server.h"
#include "sim/core/error.h"

namespace lockstep::runner {

bool is_server(const WorkerEnvironment& environment, int servers) {
  return servers > 0 && environment.rank >= environment.world_size - servers;
}

WorkerEnvironment without_servers(WorkerEnvironment environment, int servers, int least) {
  if (servers == 0) return environment;
  const int workers = environment.world_size - servers;
  if (workers < least) {
    throw InputError(
        {}, "--servers",
        fmt::format("{} of {} processes leave {} to work", servers, environment.world_size,
                    std::max(0, workers)),
        least == 1 ? "start more than servers" : "start two more than servers, or more");
  }
  const bool one_host = environment.local_size == environment.world_size;
  if (!one_host && environment.local_size > 1) {
    throw InputError({}, "--servers", "several processes on each of several hosts",
                     "over several hosts one a host: the last ones are the servers'");
  }
  environment.world_size = workers;
  if (one_host) environment.local_size = workers;
  return environment;
}

void run_server(const WorkerEnvironment& environment, int threads, int silence_seconds,
                const std::function<void(const std::string&)>& give_up) {
  keep_memory();
  const auto device = make_cpu_device(threads);
  const std::shared_ptr<Store> store = meet(environment);
  const auto group = make_point_to_point(environment, store);
  std::optional<Watch> watch;
  if (give_up) watch.emplace(environment, std::chrono::seconds(silence_seconds), give_up);
  Progress progress(progress_fd(), /*talk=*/false);
  watched(watch, [&] {
    serve(*group, [&progress](bool busy) {
      if (busy) {
        progress.beat();
      } else {
        progress.idle();
      }
    });
  });
}

void dismiss_servers(PointToPoint* group, int workers) {
  if (group == nullptr) return;
  for (int server = workers; server < group->size(); ++server) {
    order_server(*group, server, {.what = ServerOrder::What::leave});
  }
}

void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
}

}  // namespace lockstep::runner

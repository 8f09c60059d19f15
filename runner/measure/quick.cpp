#include "runner/measure/quick.h"

#include <unistd.h>

#include <ctime>
#include <fstream>
#include <sstream>

#include "runner/measure/clock.h"

namespace lockstep::runner {

QuickPass time_quickly(Worker& worker, const Configuration& configuration) {
  const MeasureOptions asked = worker.options;
  worker.options.steps = 1;
  worker.options.repeat = 1;  // the first draws a timeline, too
  worker.progress.hush(true);
  worker.speed();  // what comes first takes longer
  const Moment speed_begin = host_now();
  worker.speed();
  const Moment begin = host_now();
  measure_configuration(worker, configuration);
  worker.barrier();
  QuickPass quick;
  quick.whole = Time::nanoseconds(host_now() - begin);
  int looks = 1;
  for (const ProfileSample& sample : worker.part.measurement.profiles) {
    quick.steps += sample.profile.step * 2;  // profiled and plain
    quick.step = quick.step == Time{} ? sample.profile.step : quick.step;
    looks += sample.profile.beside > 1 ? 1 : 0;
  }
  for (const Run& run : worker.part.runs) {
    quick.steps += run.repeats.front().step.p50;
    looks += run.workers > 1 ? 1 : 0;
  }
  if (quick.step == Time{} && !worker.part.runs.empty()) {  // a replay has no profiles
    quick.step = worker.part.runs.front().repeats.front().step.p50;
  }
  quick.speeds = Time::nanoseconds(begin - speed_begin) * looks;
  worker.options = asked;
  worker.progress.hush(false);
  worker.forget();
  return quick;
}

Time process_age() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 19; ++i)
    fields >> skipped;  // from the state on; starttime is the 22nd of all
  double ticks = 0;
  fields >> ticks;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double seconds = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
                         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  return Time::from_seconds(seconds > 0 ? seconds : 0);
}

}  // namespace lockstep::runner

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/task_graph.h"
#include "sim/workload/workload.h"

namespace lockstep {

/// The parts of a graph that its programs share: names, interference, collectives.
class GraphParts {
 public:
  explicit GraphParts(const Workload& workload);

  std::uint32_t name(const std::string& text);
  std::uint16_t interference_of(const std::string& layer_kind) const;
  /// The i-th collective of every program; the first program to ask adds it.
  std::int32_t collective(std::size_t i, const Collective& collective);
  /// A delay by its stream; the first program to ask adds it. Returns what Task::drawn is.
  std::uint16_t delay(const StepDelay& delay);
  /// Moves everything into a graph over `programs`.
  TaskGraph finish(const Workload& workload, std::vector<Program> programs);

 private:
  TaskGraph graph_;
  std::map<std::string, std::uint32_t> names_;
  std::map<std::string, std::uint16_t> interference_;
  Time wait_beside_compute_;  ///< of a table's collective, in which it slows nobody
};

/// Writes one iteration of one worker, in program order, as what the program does becomes tasks:
/// eager on a GPU, a launch on the host lane and work on a stream; as a recorded graph, one launch
/// for all; on a CPU, work on the compute lane alone.
class WorkerProgram {
 public:
  using Id = ProgramBuilder::Id;
  WorkerProgram(const Workload& workload, std::uint32_t profile, GraphParts& parts);

  /// Work on the device; `layer_kind` tells how it suffers beside a collective.
  Id work(TaskKind kind, const std::string& name, const Cost& cost,
          const std::string& layer_kind = "");
  /// The host is busy for a while and launches nothing (on a CPU: so is the device).
  void call(Time host, Time device);
  /// Queued behind what compute holds so far; compute goes on.
  Id collective(const std::string& name, CollectiveKind kind, Bytes bytes);
  /// One that the host of a GPU takes part in, from where it has got to, with nothing of its
  /// device; elsewhere as collective().
  Id collective_of_host(const std::string& name, CollectiveKind kind, Bytes bytes);
  /// What is written from here on comes after all collectives so far.
  void join();
  /// The host launches nothing more until those are over; where it launches nothing, as join().
  void join_host();
  /// Where a host issues: it stands still until the device has done `after`, and `time` longer.
  void hold_host(const std::string& name, Id after, Time time);

  /// Where the program is: what it has queued last in the compute lane, and the places in their
  /// lanes of that and of the host's last task (none: the host lane is empty).
  struct Position {
    Id last = 0;
    std::uint32_t compute = 0;
    std::optional<std::uint32_t> host;
  };
  Position position();
  /// What a thread beside the program does, on the communication lane, behind what that holds and
  /// behind `after`: work of its own, or a collective, of which a mark moves nothing that counts as
  /// gradients. The program launches neither; join() waits for them.
  Id beside(TaskKind kind, const std::string& name, Time work, std::optional<Id> after = {});
  Id collective_beside(TaskKind kind, const std::string& name, CollectiveKind collective,
                       Bytes bytes, std::optional<Id> after = {});

  /// What a step begins with: the launch of a recorded graph, the batch, the step's own overhead.
  void begin_step();
  /// What each pass of a step after its first begins with: outside layers and optimizer a pass
  /// takes what a step takes, since the loss is set off and the gradients are let go in each.
  void begin_pass();
  void forward();
  /// Of all layers, each followed by `after` (layer).
  template <class After>
  void backward(After after) {
    begin_part(StepPart::backward);
    for (const std::uint32_t index : backward_order(profile_)) {
      backward_of(profile_.layers[index]);
      after(profile_.layers[index]);
    }
  }
  void backward() {
    backward([](const Layer&) {});
  }
  void optimizer();
  /// Floating-point buffers and batch counters of rank 0, to all.
  void broadcast_buffers();
  /// For strategies that write a part of the step layer by layer: its beginning.
  void begin_part(StepPart part);
  /// Adds the step's synchronisation, where the workload asks for it.
  Program end_step();

  const Profile& profile() const { return profile_; }
  bool is_root() const { return root_; }
  /// Null where all workers are of one kind.
  const UnlikeWorker* unlike() const { return unlike_; }

 private:
  void backward_of(const Layer& layer);
  Id add_beside(Task task, const std::string& name, std::optional<Id> after);
  std::optional<Id> issue(const std::string& name, Time host, int launches);
  Id on_device(TaskKind kind, Lane lane, const std::string& name, Time device,
               const std::string& layer_kind);
  Id last_in_compute();
  void load_input();
  void wait(const StepDelay& delay);

  const Workload& workload_;
  const Profile& profile_;
  const bool root_;
  const UnlikeWorker* unlike_;
  const bool cpu_;  ///< computes on the host's cores
  const std::vector<StepDelay> delays_;
  GraphParts& parts_;
  ProgramBuilder builder_;
  std::vector<Id> before_next_;   ///< what the next work on the device waits for
  std::optional<Id> last_work_;   ///< on the compute lane, in this iteration
  std::optional<Id> last_issue_;  ///< on the host lane, in this iteration
  std::optional<Id> last_collective_;
  std::optional<CollectiveKind> row_;  ///< of the calls that the host is making in a row
  std::size_t collectives_ = 0;
  Time pending_host_, pending_device_;  ///< calls that are not yet part of a task
};

}  // namespace lockstep

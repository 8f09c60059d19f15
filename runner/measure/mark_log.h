#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runner/measure/recorder.h"

namespace lockstep::runner {

/// The part of a step that a stretch between two marks belongs to.
enum class StretchKind : std::uint8_t { forward, backward, optimizer, overhead };

/// What lies between two neighbouring marks of a step.
struct Stretch {
  StretchKind kind = StretchKind::overhead;
  int layer = -1;
  std::int64_t begin = 0, end = 0;  ///< what the log read at the two marks
};

/// Notes what `read` returns at each mark, e.g. the host's time.
class MarkLog : public Recorder {
 public:
  explicit MarkLog(std::function<std::int64_t()> read) : read_(std::move(read)) {}
  void mark(Mark mark, int layer) override { marks_.push_back({mark, layer, read_()}); }

  /// The step's stretches in order; they add up to it.
  std::vector<Stretch> stretches() const;
  void clear() { marks_.clear(); }

 private:
  struct Entry {
    Mark mark;
    int layer;
    std::int64_t value;
  };
  std::function<std::int64_t()> read_;
  std::vector<Entry> marks_;
};

}  // namespace lockstep::runner

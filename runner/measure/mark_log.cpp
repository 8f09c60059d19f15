#include "runner/measure/mark_log.h"

namespace lockstep::runner {

std::vector<Stretch> MarkLog::stretches() const {
  std::vector<Stretch> stretches;
  for (std::size_t i = 1; i < marks_.size(); ++i) {
    const Entry& before = marks_[i - 1];
    const Entry& after = marks_[i];
    Stretch stretch{
        .kind = StretchKind::overhead, .layer = -1, .begin = before.value, .end = after.value};
    if (after.mark == Mark::forward_end) {
      stretch.kind = StretchKind::forward;
      stretch.layer = after.layer;
    } else if (before.mark == Mark::backward_begin && before.layer >= 0) {
      stretch.kind = StretchKind::backward;
      stretch.layer = before.layer;
    } else if (before.mark == Mark::optimizer_begin) {
      stretch.kind = StretchKind::optimizer;
    }
    stretches.push_back(stretch);
  }
  return stretches;
}

}  // namespace lockstep::runner

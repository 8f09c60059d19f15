#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runner/measure/estimate.h"
#include "sim/core/time.h"

namespace lockstep::runner {

/// A piece that all ranks measured and saved.
struct PieceDone {
  int repeat = 0;
  std::string piece;
  Time took;
  bool operator==(const PieceDone&) const = default;
};

/// How far a visit has come; `visit.json` in its folder, written after each piece. With the parts
/// that it names, a measurement that was broken off goes on where it stopped.
struct VisitRecord {
  std::string id;
  std::string date;                             ///< of its beginning
  std::map<std::string, std::string> settings;  ///< value of every flag that decides what is done
  int repeats = 0;                              ///< asked for; fewer where the budget holds fewer
  Time start;                                   ///< from a worker's start to its first piece
  Time spent;                                   ///< in all
  bool finished = false;
  bool older =
      false;  ///< results of an earlier visit lie in the folder, until this one is finished
  std::vector<PieceEstimate> pieces;  ///< of a repeat, in order; empty before they are known
  std::vector<PieceDone> done;

  bool has(int repeat, std::string_view piece) const;
  bool has_all(int repeat) const;  ///< false where its pieces are not known yet
  bool operator==(const VisitRecord&) const = default;
};

VisitRecord read_visit(const std::string& file);
void write_visit(const VisitRecord& record, const std::string& file);
std::string visit_file(const std::string& out);

/// "--batches was 16,32 and is 16", of the first that differs; empty where all are the same.
std::string difference(const std::map<std::string, std::string>& before,
                       const std::map<std::string, std::string>& now);

/// All that is still to be measured from `repeat` on, starts of workers included, in order.
std::vector<PieceEstimate> still_to_do(const VisitRecord& record, int repeat);

/// What the pieces really took where they were measured, what was estimated where not.
std::vector<PieceEstimate> as_measured(const VisitRecord& record);

}  // namespace lockstep::runner

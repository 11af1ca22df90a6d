// What rules share: cuts of host time for a what-if, and the worst events as evidence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "advise/context.h"
#include "advise/finding.h"
#include "analyze/ops/op_lines.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

inline constexpr size_t kEvidenceSlices = 5;
inline constexpr size_t kEvidenceRanges = 5;

// An operator that no other one calls.
inline bool is_outermost_op(const HostSlices& host, Row row) {
  if (host.kind[row] != HostKind::kOp) return false;
  return host.parent[row] == kNoRow || host.kind[host.parent[row]] != HostKind::kOp;
}

// The operator that no other one calls, up from `op`.
inline Row outermost_op(const Model& model, Row op) {
  const HostSlices& host = model.host_slices;
  while (host.parent[op] != kNoRow && host.kind[host.parent[op]] == HostKind::kOp) op = host.parent[op];
  return op;
}

// Where the way to it begins, from Python or the autograd engine: when the slice before it on the same level ended; its
// own start when that is too long ago to be just the way.
int64_t way_start_ns(const Model& model, Row row);

// Whether the trace says which lines of the program called its operators.
inline bool knows_lines(const Context& context) { return !context.trace.get<analyze::op_lines>().empty(); }

// The shapes of an operator's inputs as the trace has them (JSON); "" when they were not recorded.
inline std::string_view input_dims_text(const Model& model, Row op) {
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || model.op_details.input_dims[detail] == kNoString) return {};
  return model.text(model.op_details.input_dims[detail]);
}

// The window's moments in which the leading chain was in one of `activities`, as cuts that keep `keep`.
std::vector<analyze::HostCut> cuts_of(const Context& context, std::initializer_list<analyze::Activity> activities,
                                      double keep);

// Time per step of the leading chain in `activity`, recorded.
int64_t activity_ns(const Context& context, analyze::Activity activity);

// The longest of these host slices as evidence, longest first.
void add_longest(Finding& finding, const Model& model, std::vector<Row> host_rows);

// The longest idle gaps of the window whose main cause is `cause` as ranges.
template <typename Wanted>
void add_gaps(Finding& finding, const Context& context, const Wanted& wanted) {
  std::vector<analyze::IdleGap> gaps;
  for (const analyze::IdleGap& gap : context.study->idle.gaps) {
    if (wanted(gap.main_cause)) gaps.push_back(gap);
  }
  const size_t count = std::min(gaps.size(), kEvidenceRanges);
  std::partial_sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(count), gaps.end(),
                    [](const analyze::IdleGap& a, const analyze::IdleGap& b) {
                      return a.end_ns - a.start_ns > b.end_ns - b.start_ns;
                    });
  for (size_t i = 0; i < count; ++i) finding.ranges.push_back({gaps[i].start_ns, gaps[i].end_ns});
}

// Annotations of the leading chain in the window that are there for that.
std::vector<Row> annotations(const Context& context, HostRole role);
std::vector<Row> annotations(const Context& context, bool (*is_wanted)(HostRole));

// Device work that was launched while one of these host slices was open, by any thread. They do not overlap. Goes
// through all work: for many slices one by one, ask LaunchedWork.
std::vector<Row> launched_during(const Model& model, std::vector<Row> host_rows);

// Device work by when it was launched.
class LaunchedWork {
 public:
  explicit LaunchedWork(const Model& model);
  // What was launched while that host slice was open, by any thread, in the order of the table.
  std::vector<Row> during(Row host_row) const;

 private:
  const HostSlices& host_;
  std::vector<std::pair<int64_t, Row>> by_launch_;
};

// For StudiedTrace::get.
LaunchedWork launched_work(const Model& model);

}  // namespace firelane::advise

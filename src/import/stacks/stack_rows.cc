#include "import/stacks/stack_rows.h"

#include <algorithm>
#include <string>

#include "model/module_call.h"

namespace firelane::importer {

namespace {
constexpr size_t kDeepestStack = 4096;
}

void StackRows::begin_lane(std::string_view name) {
  lane_ = pool_.lane({.number = 1}, {.number = next_lane_++});
  part_.lane_names.push_back(
      {.lane = lane_, .what = LaneNameKind::kThreadName, .text = pool_.strings.intern(std::string(name))});
  now_ns_ = 0;
  open_.clear();
}

void StackRows::end_lane(int64_t end_ns, bool is_cut) {
  if (is_cut) part_.losses[Stat::kBeginWithoutEnd] += open_.size();
  while (!open_.empty()) pop(end_ns);
}

void StackRows::pop(int64_t at_ns) {
  auto& slice = part_.host_slices[open_.back().row];
  slice.duration_ns = std::max<int64_t>(0, at_ns - slice.start_ns);
  open_.pop_back();
}

void StackRows::open(StringId frame, int64_t at_ns) {
  if (open_.size() >= kDeepestStack) {
    ++part_.losses[Stat::kNestedTooDeep];
    return;
  }
  open_.push_back({frame, part_.host_slices.size()});
  part_.host_slices.push_back({.start_ns = at_ns,
                               .duration_ns = 0,
                               .lane = lane_,
                               .name = frame,
                               .category = pool_.strings.intern("python_function"),
                               .kind = HostKind::kPython,
                               .module = module_call_of_frame(pool_.strings.view(frame))});
  ++part_.event_count;
}

void StackRows::close(StringId frame, int64_t at_ns) {
  const auto found = std::find_if(open_.rbegin(), open_.rend(), [&](const Frame& each) { return each.name == frame; });
  if (found == open_.rend()) {
    ++part_.losses[Stat::kEndWithoutBegin];
    return;
  }
  const auto keep = static_cast<size_t>(open_.rend() - found) - 1;
  while (open_.size() > keep) pop(at_ns);
}

void StackRows::sample(std::span<const StringId> stack, int64_t ns) {
  size_t same = 0;
  while (same < std::min(open_.size(), stack.size()) && open_[same].name == stack[same]) ++same;
  while (open_.size() > same) pop(now_ns_);
  for (const StringId frame : stack.subspan(same)) open(frame, now_ns_);
  now_ns_ += ns;
}

}  // namespace firelane::importer

#include "advise/grad_scaler.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace firelane::advise {

bool are_of_scaler(const Model& model, const std::vector<Row>& calls) {
  const HostSlices& host = model.host_slices;
  const StringId unscale = model.strings.find("aten::_amp_foreach_non_finite_check_and_unscale_");
  if (unscale == kNoString || calls.empty()) return false;
  std::vector<int64_t> unscaled;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.name[row] == unscale) unscaled.push_back(host.start_ns[row]);
  }
  std::sort(unscaled.begin(), unscaled.end());
  size_t theirs = 0;
  std::ptrdiff_t before = 0;  // how often gradients had been unscaled at the call before
  for (const Row call : calls) {
    const auto now = std::upper_bound(unscaled.begin(), unscaled.end(), host.start_ns[call]) - unscaled.begin();
    theirs += now > before;
    before = now;
  }
  return theirs * 10 >= calls.size() * 9;
}

bool are_of_norms(const Model& model, const std::vector<Row>& calls) {
  constexpr int kMostBetween = 12;  // operators of clip_grad_norm_ between the norms and the read
  const HostSlices& host = model.host_slices;
  const auto is_norm = [&](Row row) {
    const std::string_view name = model.text(host.name[row]);
    return name == "aten::_foreach_norm" || name == "aten::linalg_vector_norm" || name == "aten::norm";
  };
  size_t theirs = 0;
  for (const Row call : calls) {
    const Row lane_begin = model.lanes.host_begin[static_cast<size_t>(host.lane[call])];
    int between = 0;
    for (Row row = call; row > lane_begin && between <= kMostBetween;) {
      --row;
      if (host.kind[row] != HostKind::kOp) continue;
      if (is_norm(row)) {
        ++theirs;
        break;
      }
      const bool outermost = host.parent[row] == kNoRow || host.kind[host.parent[row]] != HostKind::kOp;
      between += outermost ? 1 : 0;
    }
  }
  return !calls.empty() && theirs * 10 >= calls.size() * 9;
}

}  // namespace firelane::advise

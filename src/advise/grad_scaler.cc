#include "advise/grad_scaler.h"

#include <algorithm>
#include <cstdint>

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

}  // namespace firelane::advise

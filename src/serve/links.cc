#include "serve/links.h"

#include <algorithm>

namespace firelane::serve {

namespace {

bool is_before(const LinkIndex::Link& a, const LinkIndex::Link& b) {
  return a.from != b.from ? a.from < b.from : a.to < b.to;
}

}  // namespace

LinkIndex::LinkIndex(const Model& model) {
  const DeviceSlices& device = model.device_slices;
  for (Row row = 0; row < device.size(); ++row) {
    const Row from = device.launch[row] != kNoRow ? device.launch[row] : device.op[row];
    if (from != kNoRow) device_work_.push_back({from, row});
  }
  const OpDetails& ops = model.op_details;
  for (Row detail = 0; detail < ops.size(); ++detail) {
    if (ops.forward[detail] != kNoRow && ops.slice[detail] != kNoRow) {
      backward_.push_back({ops.forward[detail], ops.slice[detail]});
    }
  }
  std::sort(device_work_.begin(), device_work_.end(), is_before);
  std::sort(backward_.begin(), backward_.end(), is_before);
}

std::span<const LinkIndex::Link> LinkIndex::within(const std::vector<Link>& links, Row begin, Row end) {
  const auto first = std::lower_bound(links.begin(), links.end(), Link{begin, 0}, is_before);
  const auto last = std::lower_bound(first, links.end(), Link{end, 0}, is_before);
  return std::span(links).subspan(static_cast<size_t>(first - links.begin()), static_cast<size_t>(last - first));
}

}  // namespace firelane::serve

#include "advise/kernel_evidence.h"

#include "analyze/compute/copies.h"

namespace firelane::advise {

void add_work_of(const Context& context, const std::vector<Row>& ops, double keep_low, Evidence& evidence) {
  if (!context.has_device_work) {
    for (const Row op : ops) {
      const Row asked = analyze::asked_copy(context.model, op);
      evidence.add_call(asked, keep_low, 0);
      if (keep_low < 1) evidence.add_way_to(asked);
    }
    return;
  }
  std::vector<bool> is_wanted(context.model.host_slices.size());
  for (const Row op : ops) is_wanted[op] = true;
  const DeviceSlices& device = context.model.device_slices;
  for (Row row = 0; row < device.size(); ++row) {
    if (device.op[row] == kNoRow || !is_wanted[device.op[row]]) continue;
    evidence.add_device(row, keep_low, 0);
    evidence.add_host(analyze::asked_copy(context.model, device.op[row]));
  }
}

}  // namespace firelane::advise

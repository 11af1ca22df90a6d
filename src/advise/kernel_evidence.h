// What rules about kernels share: a walk over the analyzed ones, and the work of copies.
#pragma once

#include <vector>

#include "advise/context.h"
#include "advise/evidence.h"
#include "analyze/device/kernel_traits.h"
#include "model/model.h"

namespace firelane::advise {

// The cause of what a compiler would join: findings with a name of their own are part of it.
inline constexpr const char* kFusion = "fusion";
// That of a host which cannot feed the device, whatever it does.
inline constexpr const char* kOverhead = "overhead";

// Kernels with their class, in the judged steps; `visit(row, traits)`.
template <typename Visit>
void for_kernels(const Context& context, const Visit& visit) {
  const DeviceSlices& device = context.model.device_slices;
  analyze::TraitsOfNames traits(context.model);
  for (Row row = 0; row < device.size(); ++row) {
    if (device.kind[row] != DeviceKind::kKernel || !context.holds(row)) continue;
    visit(row, traits.of(device.name[row]));
  }
}

// Device work of these ops; without a device, the ops themselves with what was called to make the copy.
void add_work_of(const Context& context, const std::vector<Row>& ops, double keep_low, Evidence& evidence);

}  // namespace firelane::advise

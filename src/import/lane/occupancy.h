// How full a kernel can make the multiprocessors, by its launch and the device's limits: CUDA's occupancy calculation.
#pragma once

#include "model/raw.h"

namespace firelane {

// Fills blocks and warps per multiprocessor and the estimated achieved occupancy. Leaves them unknown when the
// device's properties are.
void estimate_occupancy(const DeviceProperties& device, RawKernel& kernel);

}  // namespace firelane

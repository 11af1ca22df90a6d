// Lanes of a device whose slices no reader understood.
//
// Such a lane is shown and counted, and nothing is concluded from it: above all not that the program ran on the CPU
// alone. A lane is one of a device when its slices were read as a device's, or when its process is labelled as one
// ("NPU 0", "GPU 3"); it is understood when any of its slices is of a known kind, or when it only repeats others
// (spans).
#pragma once

#include <vector>

#include "model/model.h"

namespace firelane {

// "GPU 0", "NPU", "TPU 3 (pid 12)": whether a name or label of a process speaks of an accelerator.
bool names_device(std::string_view text);

std::vector<LaneId> unknown_device_lanes(const Model& model);

}  // namespace firelane

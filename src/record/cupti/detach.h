// Takes CUPTI out of the process. Once kernels were traced, every launch stays dearer with all kinds off, until then.
#pragma once

#include "record/cupti/api.h"

namespace firelane::cupti {

// From the end of a CUDA call of our own, as NVIDIA's documentation asks for: called from anywhere else, cuptiFinalize
// crashed threads that were inside of a CUDA call (CUDA 13.0). False: CUPTI stays, for another tool uses it, it is too
// old, or there is no driver.
// REQUIRES: no kind is enabled, and no subscriber of ours is left.
bool detach_cupti(const CuptiApi& api) noexcept;

}  // namespace firelane::cupti

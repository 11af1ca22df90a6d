// Detaches CUPTI from the process. Once kernels were traced, every launch stays slower until then, even with all kinds
// off.
#pragma once

#include "record/cupti/api.h"

namespace firelane::cupti {

// At the end of a CUDA call of our own, as NVIDIA's documentation requires: called from anywhere else, cuptiFinalize
// crashed threads that were inside a CUDA call (CUDA 13.0). False: CUPTI stays attached, because another tool uses it,
// it is too old, or there is no driver. REQUIRES: no kind is enabled, and no subscriber of ours is left.
bool detach_cupti(const CuptiApi& api) noexcept;

// With true, detach_cupti() does nothing from now on: where CUPTI's profiler was started (record/cupti/metrics.h), a
// CUPTI that was detached gives the next recordings kernels without times (CUDA 13.0 on an H200).
void keep_cupti_attached(bool keep) noexcept;

}  // namespace firelane::cupti

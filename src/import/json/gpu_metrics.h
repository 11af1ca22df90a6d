// Values of hardware counters in Kineto's traces, in the unit that their names say.
#pragma once

#include "model/raw.h"

namespace firelane::importer {

// Kineto writes what CUPTI gave (base/gpu_metrics.h). Marks the trace, so that an export of it is not changed again.
void settle_gpu_metrics(RawTrace& raw);

}  // namespace firelane::importer

// What `firelane cost` shows.
#pragma once

#include "analyze/cost.h"
#include "report/table.h"

namespace firelane::report {

Report cost_report(const Cost& cost, const CostOptions& options);

}  // namespace firelane::report

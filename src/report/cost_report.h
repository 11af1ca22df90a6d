// What `firelane cost` shows.
#pragma once

#include "analyze/verdict/cost.h"
#include "report/table.h"

namespace firelane::report {

Report cost_report(const analyze::Cost& cost, const analyze::CostOptions& options);

}  // namespace firelane::report

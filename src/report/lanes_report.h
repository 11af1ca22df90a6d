// `firelane lanes` as a report.
#pragma once

#include <vector>

#include "analyze/trace/lanes.h"
#include "report/table.h"

namespace firelane::report {

enum class EmptyLanes : uint8_t { kHide, kShow };

Report lanes_report(const Model& model, const std::vector<analyze::LaneRow>& rows, EmptyLanes empty);

}  // namespace firelane::report

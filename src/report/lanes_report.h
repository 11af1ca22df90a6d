// `firelane lanes` as a report.
#pragma once

#include <vector>

#include "analyze/lanes.h"
#include "report/table.h"

namespace firelane::report {

enum class EmptyLanes : uint8_t { kHide, kShow };

Report lanes_report(const Model& model, const std::vector<LaneRow>& rows, EmptyLanes empty);

}  // namespace firelane::report

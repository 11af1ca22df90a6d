// `firelane steps` as a report.
#pragma once

#include "analyze/steps/steps.h"
#include "report/table.h"

namespace firelane::report {

Report steps_report(const analyze::StepTable& table);

}  // namespace firelane::report

// `firelane info` as a report: what the trace is, what it holds, what it can answer, what it lost.
#pragma once

#include "analyze/trace/info.h"
#include "model/model.h"
#include "report/table.h"

namespace firelane::report {

Report info_report(const Model& model, const analyze::TraceDescription& description);

}  // namespace firelane::report

// What `firelane fusion` shows.
#pragma once

#include "analyze/fusion.h"
#include "report/table.h"

namespace firelane::report {

struct FusionReportOptions {
  size_t max_rows = 0;  // 0 = all
};

Report fusion_report(const Model& model, const FusionTable& table, const FusionReportOptions& options = {});

}  // namespace firelane::report

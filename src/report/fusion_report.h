// What `firelane fusion` shows.
#pragma once

#include "analyze/compute/fusion.h"
#include "report/table.h"

namespace firelane::report {

struct FusionReportOptions {
  size_t max_rows = 0;  // 0 = all
};

Report fusion_report(const Model& model, const analyze::FusionTable& table, const FusionReportOptions& options = {});

}  // namespace firelane::report

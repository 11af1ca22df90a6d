// What `firelane modules` shows.
#pragma once

#include "analyze/modules/modules.h"
#include "report/table.h"

namespace firelane::report {

struct ModulesReportOptions {
  size_t max_rows = 0;     // 0 = all
  int64_t max_depth = -1;  // -1 = all
};

Report modules_report(const analyze::ModuleTable& table, const ModulesReportOptions& options = {});

}  // namespace firelane::report

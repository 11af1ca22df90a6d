// `firelane kernels` as a report.
#pragma once

#include <cstddef>

#include "analyze/device/kernels.h"
#include "report/table.h"

namespace firelane::report {

struct KernelReportOptions {
  size_t max_rows = 0;    // 0 = all
  bool sum_rest = false;  // what max_rows leaves out becomes one row, so that the table still adds up
};

Report kernels_report(const Model& model, const analyze::KernelTable& table, const KernelReportOptions& options = {});

}  // namespace firelane::report

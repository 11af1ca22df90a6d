// What `firelane kernels --roofline` shows.
#pragma once

#include "analyze/compute/roofline.h"
#include "report/table.h"

namespace firelane::report {

struct RooflineReportOptions {
  size_t max_rows = 0;  // 0 = all
};

Report roofline_report(const Model& model, const analyze::Roofline& roofline,
                       const RooflineReportOptions& options = {});

}  // namespace firelane::report

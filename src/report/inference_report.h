// What `firelane inference` shows.
#pragma once

#include "analyze/verdict/inference.h"
#include "report/table.h"

namespace firelane::report {

struct InferenceReportOptions {
  size_t max_rows = 0;  // 0 = all
};

Report inference_report(const analyze::Inference& inference, const InferenceReportOptions& options = {});

}  // namespace firelane::report

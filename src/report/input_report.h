// What `firelane input` shows.
#pragma once

#include "analyze/steps/input_pipeline.h"
#include "report/table.h"

namespace firelane::report {

Report input_report(const Model& model, const analyze::InputPipeline& input);

}  // namespace firelane::report

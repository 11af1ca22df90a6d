// The numbers behind a verdict as tables: breakdown, idle, launches, syncs, critical path, what-if.
#pragma once

#include "analyze/verdict/study.h"
#include "model/model.h"
#include "report/table.h"

namespace firelane::report {

Report breakdown_report(const Model& model, const analyze::Study& study);
// max_gaps: the longest gaps to list; 0 = all.
Report idle_report(const Model& model, const analyze::Study& study, size_t max_gaps);
Report launches_report(const Model& model, const analyze::Study& study);
Report syncs_report(const Model& model, const analyze::Study& study);
// max_pieces: the longest pieces to list; 0 = all.
Report critical_path_report(const Model& model, const analyze::Study& study, size_t max_pieces);
Report whatif_report(const analyze::Study& study, const analyze::WhatIf& change);

}  // namespace firelane::report

// The numbers behind a verdict as tables: breakdown, idle, launches, syncs, critical path, what-if.
#pragma once

#include "analyze/study.h"
#include "model/model.h"
#include "report/table.h"

namespace firelane::report {

Report breakdown_report(const Model& model, const Study& study);
// max_gaps: the longest gaps to list; 0 = all.
Report idle_report(const Model& model, const Study& study, size_t max_gaps);
Report launches_report(const Model& model, const Study& study);
Report syncs_report(const Model& model, const Study& study);
// max_pieces: the longest pieces to list; 0 = all.
Report critical_path_report(const Model& model, const Study& study, size_t max_pieces);
Report whatif_report(const Study& study, const WhatIf& change);

}  // namespace firelane::report

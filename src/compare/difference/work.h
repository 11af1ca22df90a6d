// Work of two sides, matched and added up by how it changed.
#pragma once

#include <span>
#include <vector>

#include "compare/difference/difference.h"

namespace firelane::compare {

std::vector<WorkChange> work_changes(const Run& before, const Run& after, std::span<const WorkMatch> matches);

// Fills in p: the device time of each kernel of an op, run by run, corrected for as many tests as there are.
void judge_work(const std::vector<Run>& before, const std::vector<Run>& after, double batch_ratio,
                const JudgeOptions& options, std::vector<WorkChange>& work);

}  // namespace firelane::compare

// `firelane sweep`: a row a point, and the picture of throughput, memory and energy.
#pragma once

#include <string>

#include "compare/sweep/sweep.h"
#include "report/table.h"

namespace firelane::report {

Report sweep_report(const compare::Sweep& sweep, double price_per_hour);

// A complete SVG: one panel a figure that is known, over the first variable; a line for each combination of the others.
std::string sweep_svg(const compare::Sweep& sweep);

}  // namespace firelane::report

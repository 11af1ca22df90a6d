// What flight recorders say about a job that hangs: the answer in one line, then who waits for whom.
#pragma once

#include <string>

#include "flight/hangs.h"
#include "report/table.h"

namespace firelane::report {

// "rank 1 holds up 2 other ranks: it has not called all_reduce #2 of default_pg"
std::string hangs_headline(const flight::HangReport& found);

Report hangs_report(const flight::HangReport& found);

// "0-3, 7": ranks in order.
std::string rank_ranges(const std::vector<int64_t>& ranks);

}  // namespace firelane::report

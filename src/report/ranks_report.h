// A job of many ranks as people and programs read it.
#pragma once

#include <string>

#include "ranks/reduce/reduce.h"
#include "report/table.h"

namespace firelane::report {

struct RanksOptions {
  size_t rows = 15;            // of each table in text and Markdown; 0 = all
  double price_per_hour = -1;  // of one GPU; -1 not given
  double link_gb_s = -1;       // peak between hosts, one way and for each GPU; -1 not given
  bool findings_only = false;  // as diagnose shows a trace: verdict and findings without the tables
};

// How well it scales, who was late, why and what it cost: one sentence each.
std::vector<std::string> ranks_headlines(const ranks::Reduction& job, const RanksOptions& options);

Report ranks_report(const ranks::Reduction& job, const RanksOptions& options);
std::string ranks_text(const ranks::Reduction& job, const RanksOptions& options, Form form, const TextStyle& style);

}  // namespace firelane::report

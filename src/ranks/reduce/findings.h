// What is worth changing about a job: the findings of `firelane ranks` and `firelane diagnose DIR`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranks/reduce/reduce.h"

namespace firelane::ranks {

struct RankFinding {
  std::string id;
  std::string title;
  double share_of_step = 0;  // 0..1; 0 when it is not about time
  int64_t gain_low_ns = 0;   // per step
  int64_t gain_high_ns = 0;
  std::string try_text;
  std::string see;         // where to look
  std::string confidence;  // "low", "medium", "high"
};

// What matters most first. Empty: nothing worth fixing between the ranks.
std::vector<RankFinding> rank_findings(const Reduction& job);

// For `firelane explain`.
struct FindingText {
  std::string_view id;
  std::string_view explanation;
};
std::span<const FindingText> rank_finding_texts();

}  // namespace firelane::ranks

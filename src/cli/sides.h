// A program measured before and after a change, in turns: what it saves, for people and programs. `firelane verify` and
// `firelane tune` say it alike.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "compare/statistics/judge.h"

namespace firelane::cli {

struct Side {
  std::string name;  // "before", "after"
  bool applies = false;
  std::vector<int64_t> steps_ns;  // one a run
};
using Sides = std::array<Side, 2>;
Sides before_and_after();

// What a step takes less; the range where there are runs enough for one.
struct Saved {
  compare::Judgement judged;
  double ns() const { return judged.before - judged.after; }
  double low_ns() const { return judged.before * (1 - judged.range.high); }
  double high_ns() const { return judged.before * (1 - judged.range.low); }
};
Saved saved_by(const Sides& sides);

// `unit`: what the times are of, "step" or "sample".
std::string answer_text(const Sides& sides, const Saved& saved, const std::vector<std::string>& changes,
                        const std::string& unit = "step");
// Fields of an object: changes, before_ns, after_ns, saved_ns, low_ns, high_ns, outcome.
void add_answer(JsonWriter& json, const Sides& sides, const Saved& saved, const std::vector<std::string>& changes);

}  // namespace firelane::cli

#include "cli/sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "advise/text.h"

namespace firelane::cli {

namespace {

std::string runs_text(const Side& side) {
  std::string text;
  for (const int64_t ns : side.steps_ns) text += (text.empty() ? "" : ", ") + advise::short_time(ns);
  return text;
}

std::string saved_text(double ns) {
  const std::string text = advise::short_time(std::llround(std::abs(ns)));
  return ns < 0 ? "-" + text : text;
}

}  // namespace

Sides before_and_after() { return {{{.name = "before"}, {.name = "after", .applies = true}}}; }

Saved saved_by(const Sides& sides) {
  std::array<std::vector<double>, 2> runs;
  for (size_t i = 0; i < sides.size(); ++i) runs[i].assign(sides[i].steps_ns.begin(), sides[i].steps_ns.end());
  return {compare::judge(runs[0], runs[1], {.threshold = 0})};
}

std::string answer_text(const Sides& sides, const Saved& saved, const std::vector<std::string>& changes,
                        const std::string& unit) {
  const compare::Judgement& judged = saved.judged;
  std::string out = "with " + fmt::format("{}", fmt::join(changes, ", ")) + "\n";
  for (const Side& side : sides) {
    const double ns = side.applies ? judged.after : judged.before;
    out += fmt::format("  {:<7} {:>9} a {}   ({})\n", side.name, advise::short_time(std::llround(ns)), unit,
                       runs_text(side));
  }
  out += saved.ns() >= 0 ? fmt::format("saves {} per {}: {:.2f}x as fast", saved_text(saved.ns()), unit,
                                       judged.before / std::max(1.0, judged.after))
                         : fmt::format("costs {} per {}", saved_text(-saved.ns()), unit);
  if (judged.has_range) {
    out += fmt::format("; saved, 95% sure: {} to {}", saved_text(saved.low_ns()), saved_text(saved.high_ns()));
  }
  switch (judged.outcome) {
    case compare::Outcome::kLess: return out + "; more than noise\n";
    case compare::Outcome::kMore: return out + "; slower, by more than noise\n";
    case compare::Outcome::kInconclusive: return out + "; --runs 4 or more would show whether that is noise\n";
    default:
      return out + "; not more than noise: --runs " + std::to_string(2 * sides[0].steps_ns.size()) +
             " sees smaller gains\n";
  }
}

void add_answer(JsonWriter& json, const Sides& sides, const Saved& saved, const std::vector<std::string>& changes) {
  json.key("changes").begin_array();
  for (const std::string& change : changes) json.value(change);
  json.end_array();
  for (const Side& side : sides) {
    json.key(side.name + "_ns").begin_array();
    for (const int64_t ns : side.steps_ns) json.value(ns);
    json.end_array();
  }
  json.field("saved_ns", std::llround(saved.ns()));
  if (saved.judged.has_range) {
    json.field("low_ns", std::llround(saved.low_ns())).field("high_ns", std::llround(saved.high_ns()));
  }
  json.field("outcome", compare::name_of(saved.judged.outcome));
}

}  // namespace firelane::cli

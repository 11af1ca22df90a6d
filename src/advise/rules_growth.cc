// Steps that take longer and longer, and the operator that grows with them.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/steps/growth.h"

namespace firelane::advise {

namespace {

// The operator whose time in the later half of the recorded steps exceeds that of the earlier half most; "" when none
// has at least half of what the steps grew by.
std::string what_grows(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const analyze::HostChain& chain = context.study->host->chains[0];
  std::vector<const analyze::FoundStep*> steps;
  for (const analyze::FoundStep& step : context.study->steps.steps) {
    if (!step.warm_up) steps.push_back(&step);
  }
  const size_t half = steps.size() / 2;
  if (half == 0) return "";
  std::map<StringId, int64_t> more;
  int64_t total_ns = 0;
  for (size_t i = 0; i < 2 * half; ++i) {
    const analyze::FoundStep& step = *steps[i < half ? i : steps.size() - 2 * half + i];
    const int64_t sign = i < half ? -1 : 1;
    total_ns += sign * step.duration_ns();
    for (size_t at = chain.segment_after(step.start_ns); at < chain.segments.size(); ++at) {
      const analyze::HostSegment& segment = chain.segments[at];
      if (segment.start_ns >= step.end_ns) break;
      if (segment.activity != analyze::Activity::kOp) continue;
      more[host.name[segment.slice]] +=
          sign * (std::min(segment.end_ns, step.end_ns) - std::max(segment.start_ns, step.start_ns));
    }
  }
  const auto most =
      std::max_element(more.begin(), more.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most != more.end() && total_ns > 0 && most->second * 2 >= total_ns ? std::string(model.text(most->first)) : "";
}

// For the recorded steps, if none was timed separately.
analyze::Growth growth_of(const Context& context) {
  if (context.model.timed_steps.size() > 0) return analyze::step_growth(context.model);
  std::vector<analyze::StepPoint> points;
  if (context.study->steps.source == analyze::StepSource::kWholeTrace) return {};
  for (const analyze::FoundStep& step : context.study->steps.steps) {
    if (!step.warm_up) points.push_back({.number = step.number, .value = step.own_ns()});
  }
  return analyze::find_growth(points);
}

std::vector<Finding> find_growing_steps(const Context& context) {
  if (context.study == nullptr || context.study->host->chains.empty()) return {};
  const analyze::Growth growth = growth_of(context);
  if (growth.law == analyze::GrowthLaw::kNone) return {};
  Finding finding{.id = "growing-steps", .events = growth.steps};
  // For the analyzed steps, which may be shorter or longer than the average of those that were timed.
  const int64_t grown_ns = (growth.last - growth.first) / 2;
  const int64_t above_first_ns = context.step_ns - growth.first;
  finding.cost_ns = above_first_ns > 0 ? std::min(grown_ns, above_first_ns) : std::min(grown_ns, context.step_ns / 2);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.gain = {.low_ns = finding.cost_ns, .high_ns = finding.cost_ns};
  const std::string op = what_grows(context);
  const bool linear = growth.law == analyze::GrowthLaw::kLinear;
  finding.title = "steps take longer and longer: " + short_time(growth.first) + " at step " +
                  std::to_string(growth.first_number) + ", " + short_time(growth.last) + " at step " +
                  std::to_string(growth.last_number) +
                  (linear ? ", linear: " + short_time(growth.slope_per_step) + " more with each"
                          : ", quadratic: each adds more than the one before") +
                  (op.empty() ? "" : "; most of it in " + op);
  finding.try_text =
      op == "aten::cat"
          ? "do not append to a tensor in every step: collect the parts in a list, or write into memory of "
            "the final size"
          : "find what grows with every step: a tensor that is appended to, a list that is read again, a graph that is "
            "kept alive, a cache without a limit";
  finding.try_code = op == "aten::cat" ? "parts.append(x)  # and torch.cat(parts) once, after the loop"
                                       : "history.append(loss.detach())  # and no loop over all of history in a step";
  const bool sure = !op.empty();
  finding.confidence = sure ? Confidence::kHigh : Confidence::kMedium;
  if (!sure) finding.confirm_by = "record two windows, early and late, and compare them with firelane compare";
  for (const analyze::FoundStep& step : context.study->steps.steps) {
    if (!step.warm_up) finding.ranges.push_back({step.start_ns, step.end_ns});
  }
  if (finding.ranges.size() > 1) finding.ranges = {finding.ranges.back()};
  return {finding};
}

}  // namespace

std::vector<Rule> growth_rules() {
  return {
      {"growing-steps", "host", 0.05, true,
       "Each step takes longer than the one before. Something that a step works on grows: a tensor that torch.cat\n"
       "appends to, a list that is summed again in every step, a graph that is kept alive, a cache without a limit.\n"
       "If steps grow linearly, the run takes quadratic time.\n\n"
       "How it is found: the median slope over all timed steps, recorded or not (at least 8), where the total rise\n"
       "is 20% of the first step or more, and each quarter of the steps is above the one before (with fewer than 12\n"
       "steps: 85% of all pairs rise). It is called quadratic if a curve fits with half of the error of a line. The\n"
       "gain is what steps would save if they stayed as long as the first of them, for the steps that were timed; a\n"
       "longer run gains more.\n\n"
       "What to do: find what grows (the finding names the operator if it was recorded) and bound it.\n\n"
       "When not: batches that are sorted by length, curriculum learning, a decoder's cache while it generates.",
       find_growing_steps},
  };
}

}  // namespace firelane::advise

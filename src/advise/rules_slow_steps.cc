// Slow steps, recorded or only timed, and what coincides with them.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "advise/notes.h"
#include "advise/rule.h"
#include "advise/text.h"

namespace firelane::advise {

namespace {

// What `firelane record` notes of steps, recorded or not (python/firelane/_step_events.py).
struct Coincidence {
  std::string_view key;
  const char* what;
  const char* text;
  const char* code;
};
constexpr std::array<Coincidence, 4> kCoincidences = {{
    {"steps_with_checkpoint", "a checkpoint is written (torch.save)",
     "write checkpoints in another thread or process, or less often",
     "torch.distributed.checkpoint.async_save(state, checkpoint_id=path)"},
    {"steps_with_evaluation", "the model is evaluated (model.eval())",
     "evaluate less often, on fewer batches, or in another process", "if step % 1000 == 0: evaluate(model)"},
    {"steps_with_loader_start", "a DataLoader starts, with its workers", "keep the workers from one epoch to the next",
     "DataLoader(..., persistent_workers=True)"},
    {"steps_with_gc", "Python's garbage collector scans all objects", "run the collector at times that you choose",
     "gc.freeze(); gc.disable()  # before the loop; gc.collect() every 1000 steps"},
}};

// Happens in nearly all of the slow steps, and hardly in others; null when nothing that was noted does.
const Coincidence* what_coincides(const Model& model, const std::vector<int64_t>& slow) {
  if (slow.empty()) return nullptr;
  for (const Coincidence& each : kCoincidences) {
    const std::vector<double> steps = noted_numbers(model, each.key);
    size_t in_slow = 0;
    size_t in_others = 0;
    for (const double noted : steps) {
      const int64_t number = std::llround(noted);
      const bool is_slow = std::find(slow.begin(), slow.end(), number) != slow.end();
      in_slow += is_slow;
      in_others += !is_slow && number >= slow.front() && number <= slow.back();
    }
    if (in_slow * 5 >= slow.size() * 4 && in_others * 5 <= in_slow) return &each;
  }
  return nullptr;
}

void tell(Finding& finding, const Coincidence& known, bool one) {
  finding.title += std::string(one ? "; in it " : "; in each of them ") + known.what;
  finding.try_text = known.text;
  finding.try_code = known.code;
  finding.confidence = Confidence::kHigh;
}

// Other processes that keep cores busy make any step slow.
std::string others_text(const Model& model) {
  constexpr double kMuch = 0.25;  // of the cores
  const auto others = noted_number(model, "cores_used_by_others");
  const int64_t cores = model.info.environment.cores_allowed;
  if (!others || cores <= 0 || *others < kMuch * static_cast<double>(cores)) return "";
  return "; other processes kept " + short_percent(std::min(1.0, *others / static_cast<double>(cores))) +
         " of the cores busy meanwhile";
}

// Every how many steps the slow ones come: 0 when they do not come at equal distances.
int64_t period_of(const std::vector<int64_t>& numbers) {
  if (numbers.size() < 2) return 0;
  std::vector<int64_t> gaps;
  for (size_t i = 1; i < numbers.size(); ++i) gaps.push_back(numbers[i] - numbers[i - 1]);
  std::vector<int64_t> sorted = gaps;
  std::sort(sorted.begin(), sorted.end());
  const int64_t period = sorted[sorted.size() / 2];
  const auto equal = static_cast<size_t>(std::count(gaps.begin(), gaps.end(), period));
  return equal * 5 >= gaps.size() * 4 ? period : 0;
}

// What a slow step had more of than the others: the host's activity with the largest excess.
std::string excess_of(const analyze::Breakdown& breakdown, const analyze::StepList& list) {
  analyze::ActivityTimes usual{};
  int64_t others = 0;
  size_t at = 0;
  std::vector<const analyze::BreakdownRow*> slow;
  for (const analyze::FoundStep& step : list.steps) {
    if (step.warm_up || at >= breakdown.steps.size()) continue;
    const analyze::BreakdownRow& row = breakdown.steps[at++];
    if (step.outlier) {
      slow.push_back(&row);
      continue;
    }
    ++others;
    for (size_t i = 0; i < analyze::kActivityCount; ++i) usual[i] += row.host[i];
  }
  if (others == 0 || slow.empty()) return "";
  size_t largest = 0;
  analyze::ActivityTimes excess{};
  for (size_t i = 0; i < analyze::kActivityCount; ++i) {
    for (const analyze::BreakdownRow* row : slow) excess[i] += row->host[i] - usual[i] / others;
    if (excess[i] > excess[largest]) largest = i;
  }
  return std::string(analyze::words_for(analyze::cause_of(static_cast<analyze::Activity>(largest))));
}

std::vector<Finding> find_recorded_outliers(const Context& context) {
  const analyze::Study& study = *context.study;
  Finding finding{.id = "slow-steps"};
  std::vector<int64_t> numbers;
  int64_t slowest_ns = study.steps.median_ns;  // of the others
  int64_t slow_ns = 0;
  for (const analyze::FoundStep& step : study.steps.steps) {
    if (step.warm_up) continue;
    if (!step.outlier) {
      slowest_ns = std::max(slowest_ns, step.own_ns());
      continue;
    }
    ++finding.events;
    numbers.push_back(step.number);
    slow_ns += step.own_ns();
    finding.ranges.push_back({step.start_ns, step.end_ns});
  }
  if (finding.events == 0) return {};
  // The recorder starts with the first step that is recorded. If all others, also those that were only timed, are
  // alike, it is that.
  constexpr int64_t kEnoughTimed = 8;
  const auto judged = std::find_if(study.steps.steps.begin(), study.steps.steps.end(),
                                   [](const analyze::FoundStep& step) { return !step.warm_up; });
  const bool only_first = finding.events == 1 && judged != study.steps.steps.end() && judged->outlier;
  if (only_first && static_cast<int64_t>(context.model.timed_steps.size()) >= kEnoughTimed) return {};
  // If they took as long as the slowest of the others, or as the median.
  const auto saved_ns = [&](int64_t each_ns) { return study.per_step(slow_ns - finding.events * each_ns); };
  finding.cost_ns = saved_ns(study.steps.median_ns);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  set_gain_of_all(context, {std::max<int64_t>(0, saved_ns(slowest_ns)), finding.cost_ns}, finding);
  finding.title = counted(finding.events, "step is", "steps are") + " much slower than the others and cost " +
                  short_percent(finding.share_of_step) + " of the average step";
  const std::string what = excess_of(study.breakdown, study.steps);
  const bool one = finding.events == 1;
  if (!what.empty()) finding.title += std::string("; in ") + (one ? "it " : "them ") + what;
  if (const Coincidence* known = what_coincides(context.model, numbers)) {
    tell(finding, *known, one);
    return {finding};
  }
  const std::string others = others_text(context.model);
  if (!others.empty()) {
    finding.title += others;
    finding.try_text = "measure again when the machine is free: these steps may only have waited for a core";
    finding.try_code = "top -o %CPU  # which processes these are";
    finding.confidence = Confidence::kLow;
    finding.confirm_by = "record again, and see whether the same steps are slow";
    return {finding};
  }
  finding.try_text = std::string("look at ") + (one ? "this step" : "these steps") +
                     ": checkpoints, logging, evaluation, a slow batch";
  finding.try_code = "with torch.profiler.record_function(\"checkpoint\"): ...";
  finding.confidence = Confidence::kMedium;
  finding.confirm_by = "record more steps, with " + context.flag(RecordOption::kStacks);
  return {finding};
}

// Slow steps among those that were timed only: what was recorded shows none of them, or not all.
std::vector<Finding> find_timed_outliers(const Context& context) {
  const analyze::SlowSteps& slow = context.study->slow_steps;
  if (slow.numbers.empty()) return {};
  Finding finding{.id = "slow-steps", .events = static_cast<int64_t>(slow.numbers.size())};
  finding.cost_ns = slow.excess_ns;
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  set_gain_of_all(context, {slow.excess_ns * 9 / 10, slow.excess_ns}, finding);
  const bool one = finding.events == 1;
  const int64_t period = period_of(slow.numbers);
  finding.title = std::to_string(finding.events) + " of " + counted(slow.timed, "timed step", "timed steps") +
                  (one ? " takes " : " take ") + short_time(slow.usual_slow_ns) + " instead of " +
                  short_time(slow.usual_ns) + " and cost" + (one ? "s " : " ") + short_percent(finding.share_of_step) +
                  " of the average step" +
                  (period > 1 ? "; " + std::string("one in ") + std::to_string(period) + " steps" : "");
  finding.confidence = Confidence::kHigh;
  if (const Coincidence* known = what_coincides(context.model, slow.numbers)) {
    tell(finding, *known, one);
    return {finding};
  }
  finding.title += others_text(context.model) + "; none of the recorded steps is slow like that, so what " +
                   (one ? "it does" : "they do") + " is not known";
  finding.try_text =
      "look for what happens every few steps: checkpoints, logging, evaluation, files; record such a step";
  const Front front = context.model.info.environment.front;
  finding.try_code = period > 1 ? plan_of(front, period, period) : plan_of(front, 5, 50);
  return {finding};
}

std::vector<Finding> find_outliers(const Context& context) {
  std::vector<Finding> timed = find_timed_outliers(context);
  return timed.empty() ? find_recorded_outliers(context) : timed;
}

}  // namespace

std::vector<Rule> slow_steps_rules() {
  return {
      {"slow-steps", "training", 0.02, true,
       "A few steps take much longer than the median: more than 1.25 times as long, and off by more than five times\n"
       "the typical spread. The finding says what the host did more of in them. Steps that were timed without being\n"
       "recorded count as well: they show how often slow steps occur, and what firelane record noted about them:\n"
       "torch.save, model.eval(), a DataLoader that starts, a full garbage collection. The rest is attributed to\n"
       "other processes where these keep a quarter of the cores "
       "busy.\n"
       "\n"
       "What to do: look at these steps in the timeline; move checkpoints, logging and evaluation off the training "
       "thread, or make them rarer.\n"
       "\n"
       "When not: the work in them is needed, and its share is small.",
       find_outliers},
  };
}

}  // namespace firelane::advise

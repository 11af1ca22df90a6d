#include "report/step_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "advise/device_words.h"
#include "advise/text.h"
#include "report/paint.h"

namespace firelane::report {

namespace {

constexpr size_t kBarWidth = 30;

std::string bar(double share, const TextStyle& style) {
  const auto full = static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(kBarWidth)));
  std::string filled;
  for (size_t i = 0; i < full; ++i) filled += style.color ? "█" : "#";
  return painted(filled, kCyan, style) + std::string(kBarWidth - full, style.color ? ' ' : '.');
}

std::string fitted(const analyze::Study& study, std::string words) {
  return advise::fit_words(study.origin, study.accelerator, std::move(words));
}

}  // namespace

std::string idle_words(const analyze::Study& study, analyze::IdleCause cause) {
  const bool is_light = study.recorded_steps == analyze::RecordedSteps::kLight;
  return fitted(study, std::string(analyze::words_for(cause, is_light)));
}

std::vector<StepPart> device_parts(const analyze::Study& study) {
  std::vector<StepPart> parts = {
      {"compute", "computing", [](const analyze::BreakdownRow& step) { return step.compute_ns; }},
      {"communication", "exposed communication",
       [](const analyze::BreakdownRow& step) { return step.communication_ns; }},
      {"copy", "exposed copies", [](const analyze::BreakdownRow& step) { return step.copy_ns; }}};
  for (size_t i = 0; i < analyze::kIdleCauseCount; ++i) {
    const auto cause = static_cast<analyze::IdleCause>(i);
    parts.push_back({"idle: " + std::string(analyze::name_of(cause)), idle_words(study, cause),
                     [i](const analyze::BreakdownRow& step) { return step.idle[i]; }});
  }
  return parts;
}

std::vector<StepPart> host_parts(const analyze::Study& study) {
  std::vector<StepPart> parts;
  // For a thread that the program does not wait for, and of one that is not in the trace.
  const auto words = [&](analyze::Activity activity) {
    const bool is_idle = activity == analyze::Activity::kUnrecorded && !study.host->leads;
    return is_idle ? std::string("the host was idle, or not recorded")
                   : fitted(study, std::string(analyze::words_for(analyze::cause_of(activity))));
  };
  for (size_t i = 0; i < analyze::kActivityCount; ++i) {
    const auto activity = static_cast<analyze::Activity>(i);
    parts.push_back({std::string(analyze::name_of(activity)), words(activity),
                     [i](const analyze::BreakdownRow& step) { return step.host[i]; }});
  }
  return parts;
}

std::vector<StepPart> step_parts(const analyze::Study& study) {
  return study.has_device_work ? device_parts(study) : host_parts(study);
}

std::string step_bars(const analyze::Study& study, const TextStyle& style) {
  const analyze::BreakdownRow& total = study.breakdown.total;
  const auto whole = static_cast<double>(std::max<int64_t>(1, total.duration_ns));
  std::vector<StepPart> parts = step_parts(study);
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const StepPart& a, const StepPart& b) { return a.time_ns(total) > b.time_ns(total); });
  const auto line = [&](double share, int64_t ns, std::string_view meaning) {
    return fmt::format("  {}  {:>5}  {:>9}  {}\n", bar(share, style), advise::short_percent(share),
                       advise::short_time(study.per_step(ns)), meaning);
  };
  const bool is_one_kind = study.recorded_steps == analyze::RecordedSteps::kAll;
  std::string out = painted(fmt::format("{} time of a {}step, as recorded", study.has_device_work ? "Device" : "CPU",
                                        is_one_kind ? "" : std::string(analyze::name_of(study.recorded_steps)) + " "),
                            kBold, style) +
                    "\n";
  int64_t shown = 0;
  for (const StepPart& part : parts) {
    const int64_t ns = part.time_ns(total);
    const double share = static_cast<double>(ns) / whole;
    if (share < 0.005) continue;
    shown += ns;
    out += line(share, ns, part.meaning);
  }
  const double rest = 1 - static_cast<double>(shown) / whole;
  if (rest > 0.0005) out += line(rest, total.duration_ns - shown, "the rest");
  return out;
}

}  // namespace firelane::report

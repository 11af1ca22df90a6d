#include "advise/light_note.h"

#include <array>
#include <cstdio>

#include "advise/text.h"
#include "analyze/trace/info.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

constexpr double kFits = 1.05;

// "1.08x": what recording made of a step; "" where no step was timed without.
std::string stretch(int64_t recorded_ns, int64_t true_ns) {
  if (recorded_ns <= 0 || true_ns <= 0) return "";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2fx", static_cast<double>(recorded_ns) / static_cast<double>(true_ns));
  return text.data();
}

}  // namespace

// NOLINTBEGIN(bugprone-return-const-ref-from-parameter): traces are not made from temporaries
const StudiedTrace& timed_trace(const StudiedTrace& trace) {
  const StudiedTrace& light = trace.times();
  if (&light == &trace) return trace;
  const auto& study = light.get<analyze::study>();
  const bool tells = study.bound.limit != analyze::Limit::kUnknown && study.steps.judged > 0;
  // Taking out what launches cost has to lead to the step that was timed without recording: else something else made
  // these steps longer, and what was idle in them is not the program's.
  const bool fits = study.undone.source == analyze::CostSource::kBaseline &&
                    static_cast<double>(study.undone.step_ns) <= kFits * static_cast<double>(study.undone.usual_ns);
  return tells && fits ? light : trace;
}
// NOLINTEND(bugprone-return-const-ref-from-parameter)

std::string light_note(const StudiedTrace& trace) {
  const StudiedTrace& timed = timed_trace(trace);
  if (&timed == &trace) return "";
  const auto& of_light = timed.get<analyze::study>();
  const auto& of_full = trace.get<analyze::study>();
  const auto count_of = [](const StudiedTrace& each) { return static_cast<int64_t>(each.model().steps.size()); };
  std::string note = "times are those of " + counted(count_of(timed), "light step", "light steps");
  const std::string light = stretch(of_light.usual_recorded_ns, of_light.undone.baseline_ns);
  if (!light.empty()) note += " (" + light + " as long as untouched ones)";
  note += ", operators and findings those of " + counted(count_of(trace), "full step", "full steps");
  const std::string full = stretch(of_full.usual_recorded_ns, of_full.undone.baseline_ns);
  return full.empty() ? note : note + " (" + full + ")";
}

}  // namespace firelane::advise

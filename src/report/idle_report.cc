// `firelane idle`: why the device did nothing.
#include <algorithm>

#include "analyze/verdict/study.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

Result<Report> make_idle(const StudiedTrace& trace, const Arguments& wanted) {
  const Model& model = trace.model();
  const auto& study = trace.get<analyze::study>();
  const analyze::IdleTable& idle = study.idle;
  const int64_t window = idle.window.end_ns - idle.window.start_ns;
  const bool has_device = study.has_device_work;
  Report report{
      .facts = {{"window_ns", "Window", Kind::kDuration, window},
                {"busy_ns", "Device busy", Kind::kDuration, known_if(has_device, idle.busy_ns)},
                {"idle_ns", "Device idle", Kind::kDuration, known_if(has_device, idle.idle_ns)},
                {"idle_percent", "Idle", Kind::kPercent, known_if(has_device, percent_of(idle.idle_ns, window))},
                {"gap_count", "Gaps", Kind::kNumber, known_if(has_device, static_cast<int64_t>(idle.gaps.size()))}}};
  Table causes{.name = "causes",
               .title = "Why the device was idle",
               .columns = {{"cause", "Cause"},
                           {"idle_ns", "Idle", Kind::kDuration},
                           {"share_percent", "Of the window", Kind::kPercent},
                           {"meaning", "Meaning"}},
               .hide_if_empty = true};
  std::vector<size_t> order(analyze::kIdleCauseCount);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return idle.by_cause[a] > idle.by_cause[b]; });
  for (const size_t i : order) {
    if (idle.by_cause[i] == 0) continue;
    const auto cause = static_cast<analyze::IdleCause>(i);
    causes.add({std::string(analyze::name_of(cause)), idle.by_cause[i], percent_of(idle.by_cause[i], window),
                std::string(analyze::words_for(cause))});
  }
  Table gaps{.name = "gaps",
             .title = "Longest gaps",
             .columns = {{"start_ns", "Start", Kind::kDuration},
                         {"duration_ns", "Duration", Kind::kDuration},
                         {"cause", "Main cause"},
                         {"cause_ns", "Of the gap", Kind::kDuration},
                         {"host_slice", "The host was in", Kind::kText, Align::kByKind, 50},
                         {"next", "Ended by", Kind::kText, Align::kByKind, 50}},
             .hide_if_empty = true};
  std::vector<analyze::IdleGap> sorted = idle.gaps;
  std::stable_sort(sorted.begin(), sorted.end(), [](const analyze::IdleGap& a, const analyze::IdleGap& b) {
    return a.end_ns - a.start_ns > b.end_ns - b.start_ns;
  });
  sorted.resize(shown_of(sorted.size(), wanted));
  for (const analyze::IdleGap& gap : sorted) {
    gaps.add({gap.start_ns, gap.end_ns - gap.start_ns, std::string(analyze::name_of(gap.main_cause)), gap.main_ns,
              host_name(model, gap.slice),
              gap.next == kNoRow ? Cell{} : Cell{std::string(model.text(model.device_slices.name[gap.next]))}});
  }
  report.tables = {std::move(causes), std::move(gaps)};
  if (!has_device) report.notes.push_back("no device work in this trace: device idle time is not known");
  return report;
}

}  // namespace

ReportSpec idle_report() {
  return {.name = "idle",
          .title = "Idle device",
          .sentence = "Why the device was idle: the cause of every gap.",
          .examples = {"firelane idle trace.json.gz", "firelane idle trace.json.gz --json"},
          .parameters = {Parameter::rows()},
          .shown_rows = 15,
          .tables = {{"gaps"}, {"causes"}},
          .make = make_idle};
}

}  // namespace firelane::report

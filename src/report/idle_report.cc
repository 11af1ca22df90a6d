// `firelane idle`: why the device did nothing.
#include <algorithm>
#include <numeric>

#include "analyze/verdict/sampled.h"
#include "analyze/verdict/study.h"
#include "report/registry.h"
#include "report/shared.h"
#include "report/step_parts.h"

namespace firelane::report {

namespace {

// Where the training thread was, by its samples: while the device was idle, or in steps where there is no device.
Table lines_table(const analyze::SampledPlaces& places, bool has_device, const Arguments& wanted) {
  const std::vector<analyze::SampledLine>& lines = has_device ? places.in_gaps : places.in_steps;
  const int64_t all_ns = has_device ? places.gaps_ns : places.steps_ns;
  Table table{.name = "lines",
              .title = has_device ? "Where the training thread was meanwhile" : "Where the training thread was",
              .columns = {{"line", "Line", Kind::kText, Align::kByKind, 70},
                          {"sampled_ns", "Sampled", Kind::kDuration},
                          {"share_percent", "Share", Kind::kPercent},
                          {"on_cpu_percent", "On CPU", Kind::kPercent}},
              .hide_if_empty = true};
  table.row_count = lines.size();
  for (size_t i = 0; i < shown_of(lines.size(), wanted); ++i) {
    const analyze::SampledLine& line = lines[i];
    table.add({std::string(line.frame), line.ns, percent_of(line.ns, all_ns),
               known_if(places.knows_cpu, percent_of(line.on_cpu_ns, line.ns))});
  }
  return table;
}

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
                idle_words(study, cause)});
  }
  Table gaps{.name = "gaps",
             .title = "Longest gaps",
             .columns = {{"start_ns", "Start", Kind::kDuration},
                         {"duration_ns", "Duration", Kind::kDuration},
                         {"cause", "Main cause"},
                         {.name = "cause_ns",
                          .label = "Of the gap",
                          .kind = Kind::kDuration,
                          .help = "The part of the gap that this cause explains."},
                         {"host_slice", "The host was in", Kind::kText, Align::kByKind, 50},
                         {"line", "Sampled at", Kind::kText, Align::kByKind, 50, true},
                         {"next", "Ended by", Kind::kText, Align::kByKind, 50}},
             .hide_if_empty = true};
  const auto& places = trace.get<analyze::sampled_places>();
  std::vector<size_t> longest(idle.gaps.size());
  std::iota(longest.begin(), longest.end(), size_t{0});
  std::stable_sort(longest.begin(), longest.end(), [&](size_t a, size_t b) {
    return idle.gaps[a].end_ns - idle.gaps[a].start_ns > idle.gaps[b].end_ns - idle.gaps[b].start_ns;
  });
  longest.resize(shown_of(longest.size(), wanted));
  for (const size_t i : longest) {
    const analyze::IdleGap& gap = idle.gaps[i];
    const std::string_view line = i < places.of_gaps.size() ? places.of_gaps[i] : "";
    gaps.add({gap.start_ns, gap.end_ns - gap.start_ns, std::string(analyze::name_of(gap.main_cause)), gap.main_ns,
              host_name(model, gap.slice), line.empty() ? Cell{} : Cell{std::string(line)},
              gap.next == kNoRow ? Cell{} : Cell{std::string(model.text(model.device_slices.name[gap.next]))}});
  }
  report.tables = {std::move(causes), std::move(gaps), lines_table(places, has_device, wanted)};
  if (!has_device) report.notes.push_back("no device work in this trace: device idle time is unknown");
  return report;
}

}  // namespace

ReportSpec idle_report() {
  return {.name = "idle",
          .title = "Idle device",
          .sentence = "Show why the device was idle: the cause of every gap.",
          .examples = {"firelane idle trace.json.gz", "firelane idle trace.json.gz --json"},
          .parameters = {Parameter::rows()},
          .shown_rows = 15,
          .tables = {{"gaps"}, {"causes"}, {"lines"}},
          .make = make_idle,
          .of_times = true};
}

}  // namespace firelane::report

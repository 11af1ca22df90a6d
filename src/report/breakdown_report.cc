// `firelane breakdown`: how each step was spent on device and host, and what limits its phases and operators.
#include <algorithm>

#include "advise/verdict.h"
#include "analyze/verdict/group_bounds.h"
#include "analyze/verdict/study.h"
#include "report/registry.h"
#include "report/shared.h"
#include "report/step_parts.h"

namespace firelane::report {

namespace {

Table parts_table(const analyze::Study& study) {
  Table table{.name = "parts",
              .title = "Per step",
              .columns = {{"side", "Side"},
                          {"part", "Part"},
                          {"per_step_ns", "Per step", Kind::kDuration},
                          {"share_percent", "Share", Kind::kPercent},
                          {"meaning", "Meaning"}}};
  const analyze::BreakdownRow& total = study.breakdown.total;
  const auto add = [&](const char* side, const std::vector<StepPart>& parts) {
    for (const StepPart& part : parts) {
      const int64_t ns = part.time_ns(total);
      if (ns == 0) continue;
      table.add({side, part.name, study.per_step(ns), percent_of(ns, total.duration_ns), part.meaning});
    }
  };
  if (study.has_device_work) add("device", device_parts(study));
  add("host", host_parts(study));
  return table;
}

Table judged_steps_table(const analyze::Study& study) {
  Table table{
      .name = "steps",
      .title = "Steps",
      .columns = {
          {"step", "Step", Kind::kNumber},
          {"start_ns", "Start", Kind::kDuration},
          {"duration_ns", "Duration", Kind::kDuration},
          {"undone_ns", "Without recording", Kind::kDuration},
          {"limit", "Limit"},
          {"compute_ns", "Compute", Kind::kDuration, Align::kByKind, 0, true},
          {"communication_ns", "Communication", Kind::kDuration, Align::kByKind, 0, true},
          {"copy_ns", "Copies", Kind::kDuration, Align::kByKind, 0, true},
          {"idle_ns", "Idle", Kind::kDuration, Align::kByKind, 0, true},
          {"idle_host_ns", "Host late", Kind::kDuration, Align::kByKind, 0, true},
          {"idle_input_ns", "Input", Kind::kDuration, Align::kByKind, 0, true},
          {"host_sync_ns", "Host in syncs", Kind::kDuration, Align::kByKind, 0, true},
          {"host_gc_ns", "Host in GC", Kind::kDuration},
          {.name = "outlier", .label = "Outlier", .kind = Kind::kTruth, .help = "Much slower than the other steps."}}};
  size_t at = 0;
  for (const analyze::FoundStep& step : study.steps.steps) {
    if (step.warm_up || at >= study.breakdown.steps.size()) continue;
    const analyze::BreakdownRow& row = study.breakdown.steps[at];
    int64_t late = 0;
    for (size_t i = 0; i < analyze::kActivityCount; ++i) late += row.idle[i];
    const auto if_device = [&](int64_t ns) { return study.has_device_work ? Cell{ns} : Cell{}; };
    table.add({step.number, row.start_ns, row.duration_ns, study.step_spans[at].end_ns - study.step_spans[at].start_ns,
               std::string(analyze::name_of(study.step_bounds[at].limit)), if_device(row.compute_ns),
               if_device(row.communication_ns), if_device(row.copy_ns), if_device(row.duration_ns - row.busy_ns()),
               if_device(late), if_device(row.idle[static_cast<size_t>(analyze::Activity::kInput)]),
               if_device(row.host[static_cast<size_t>(analyze::Activity::kSync)]),
               row.host[static_cast<size_t>(analyze::Activity::kGc)], int64_t{step.outlier}});
    ++at;
  }
  return table;
}

Table bounds_table(const std::vector<analyze::GroupBound>& rows, bool has_device_work, const char* name,
                   const char* title) {
  constexpr size_t kMostGroups = 15;
  Table table{.name = name,
              .title = title,
              .columns = {{"name", "Name", Kind::kText, Align::kByKind, 60},
                          {"calls", "Calls", Kind::kNumber},
                          {"host_ns", "Host", Kind::kDuration},
                          {"device_ns", "Device", Kind::kDuration, Align::kByKind, 0, true},
                          {"compute_ns", "Compute-bound", Kind::kDuration, Align::kByKind, 0, true,
                           "Device time of compute-bound kernels."},
                          {"limit", "Limit"}},
              .hide_if_empty = true};
  for (size_t i = 0; i < std::min(rows.size(), kMostGroups); ++i) {
    table.add({rows[i].name, rows[i].calls, rows[i].host_ns, known_if(has_device_work, rows[i].device_ns),
               known_if(has_device_work, rows[i].compute_ns), std::string(analyze::name_of(rows[i].limit))});
  }
  return table;
}

Result<Report> make_breakdown(const StudiedTrace& trace, const Arguments&) {
  const auto& study = trace.get<analyze::study>();
  Report report{
      .facts = {{"limit", "", Kind::kText, std::string(analyze::name_of(study.bound.limit))},
                {"verdict", "Limit", Kind::kText, advise::verdict_of(study).headline()},
                {"judged_steps", "Steps analyzed", Kind::kNumber, study.steps.judged},
                {"found_by", "Steps found by", Kind::kText, std::string(analyze::name_of(study.steps.source))},
                {"usual_ns", "Step", Kind::kDuration, study.usual_step_ns},
                {"usual_recorded_ns", recorded_label(study), Kind::kDuration, study.usual_recorded_ns},
                {"step_ns", "Step, on average", Kind::kDuration, study.mean_step_ns()},
                {"recorded_ns", recorded_label(study), Kind::kDuration, study.undone.recorded_ns},
                {"window_ns", "Window", Kind::kDuration, study.breakdown.total.duration_ns}}};
  report.tables = {
      parts_table(study), judged_steps_table(study),
      bounds_table(trace.get<analyze::phase_bounds>(), study.has_device_work, "phases", "Phases"),
      bounds_table(trace.get<analyze::annotation_bounds>(), study.has_device_work, "annotations", "Annotations"),
      bounds_table(trace.get<analyze::operator_bounds>(), study.has_device_work, "operators", "Operators")};
  if (!study.has_device_work) report.notes.push_back("no device work in this trace: only the CPU is analyzed");
  return report;
}

std::string breakdown_text(const StudiedTrace& trace, const Arguments& wanted, const TextStyle& style) {
  return step_bars(trace.get<analyze::study>(), style) + "\n" +
         render(make_breakdown(trace, wanted).value(), Form::kText, style);
}

}  // namespace

ReportSpec breakdown_report() {
  return {.name = "breakdown",
          .title = "Where a step goes",
          .sentence = "Show how each step was spent on device and host; the parts add up to the step.",
          .examples = {"firelane breakdown trace.json.gz", "firelane breakdown trace.json.gz --json"},
          .tables = {{"parts"}, {"steps"}, {"phases"}, {"annotations"}, {"operators"}},
          .make = make_breakdown,
          .text = breakdown_text};
}

}  // namespace firelane::report

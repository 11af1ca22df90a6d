#include "report/study_reports.h"

#include <algorithm>

namespace firelane::report {

namespace {

double percent(int64_t part, int64_t whole) {
  return whole <= 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

Cell name_cell(const Model& model, Row host_slice) {
  if (host_slice == kNoRow) return {};
  return std::string(model.text(model.host_slices.name[host_slice]));
}

void note_device(const analyze::Study& study, Report& report) {
  if (!study.has_device_work) report.notes.push_back("no device work in this trace: its idle time is not known");
}

Table parts_table(const analyze::Study& study) {
  Table table{.name = "parts",
              .title = "Per step",
              .columns = {{"side", "Side"},
                          {"part", "Part"},
                          {"per_step_ns", "Per step", Kind::kDuration},
                          {"share_percent", "Share", Kind::kPercent},
                          {"meaning", "Meaning"}}};
  const analyze::BreakdownRow& total = study.breakdown.total;
  const auto add = [&](std::string_view side, std::string_view part, int64_t ns, std::string_view meaning) {
    if (ns == 0) return;
    table.add({std::string(side), std::string(part), study.per_step(ns), percent(ns, total.duration_ns),
               std::string(meaning)});
  };
  if (study.has_device_work) {
    add("device", "compute", total.compute_ns, "kernels");
    add("device", "communication", total.communication_ns, "collectives that nothing hides");
    add("device", "copy", total.copy_ns, "copies and sets that nothing hides");
    for (size_t i = 0; i < analyze::kIdleCauseCount; ++i) {
      const auto cause = static_cast<analyze::IdleCause>(i);
      add("device", "idle: " + std::string(analyze::name_of(cause)), total.idle[i], analyze::words_for(cause));
    }
  }
  for (size_t i = 0; i < analyze::kActivityCount; ++i) {
    const auto activity = static_cast<analyze::Activity>(i);
    add("host", analyze::name_of(activity), total.host[i], analyze::words_for(analyze::cause_of(activity)));
  }
  return table;
}

Table steps_table(const analyze::Study& study) {
  Table table{.name = "steps",
              .title = "Steps",
              .columns = {{"step", "Step", Kind::kNumber},
                          {"start_ns", "Start", Kind::kDuration},
                          {"duration_ns", "Duration", Kind::kDuration},
                          {"undone_ns", "Without recording", Kind::kDuration},
                          {"limit", "Limit"},
                          {"compute_ns", "Compute", Kind::kDuration},
                          {"communication_ns", "Communication", Kind::kDuration},
                          {"copy_ns", "Copies", Kind::kDuration},
                          {"idle_ns", "Idle", Kind::kDuration},
                          {"idle_host_ns", "Host late", Kind::kDuration},
                          {"idle_input_ns", "Input", Kind::kDuration},
                          {"host_sync_ns", "Host in syncs", Kind::kDuration},
                          {"host_gc_ns", "Host in GC", Kind::kDuration},
                          {"outlier", "Outlier", Kind::kTruth}}};
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
               row.host[static_cast<size_t>(analyze::Activity::kSync)],
               row.host[static_cast<size_t>(analyze::Activity::kGc)], int64_t{step.outlier}});
    ++at;
  }
  return table;
}

constexpr size_t kMostGroups = 15;

Table bounds_table(const std::vector<analyze::GroupBound>& rows, const char* name, const char* title) {
  Table table{.name = name,
              .title = title,
              .columns = {{"name", "Name", Kind::kText, Align::kByKind, 60},
                          {"calls", "Calls", Kind::kNumber},
                          {"host_ns", "Host", Kind::kDuration},
                          {"device_ns", "Device", Kind::kDuration},
                          {"compute_ns", "Compute-bound", Kind::kDuration},
                          {"limit", "Limit"}},
              .hide_if_empty = true};
  for (size_t i = 0; i < std::min(rows.size(), kMostGroups); ++i) {
    table.add({rows[i].name, rows[i].calls, rows[i].host_ns, rows[i].device_ns, rows[i].compute_ns,
               std::string(analyze::name_of(rows[i].limit))});
  }
  return table;
}

}  // namespace

Report breakdown_report(const Model& model, const analyze::Study& study) {
  Report report{
      .facts = {{"limit", "Limit", Kind::kText, std::string(analyze::words_for(study.bound.limit))},
                {"judged_steps", "Steps judged", Kind::kNumber, study.steps.judged},
                {"found_by", "Steps found by", Kind::kText, std::string(analyze::name_of(study.steps.source))},
                {"step_ns", "Step", Kind::kDuration, study.undone.step_ns},
                {"recorded_ns", "While recording", Kind::kDuration, study.undone.recorded_ns},
                {"window_ns", "Window", Kind::kDuration, study.breakdown.total.duration_ns}}};
  const analyze::Interval& window = study.steps.window;
  report.tables = {
      parts_table(study), steps_table(study),
      bounds_table(analyze::phase_bounds(model, study.host, study.work_limits, window), "phases", "Phases"),
      bounds_table(analyze::annotation_bounds(model, study.host, study.work_limits, window), "annotations",
                   "Annotations"),
      bounds_table(analyze::operator_bounds(model, study.work_limits, window), "operators", "Operators")};
  note_device(study, report);
  return report;
}

Report idle_report(const Model& model, const analyze::Study& study, size_t max_gaps) {
  const analyze::IdleTable& idle = study.idle;
  const int64_t window = idle.window.end_ns - idle.window.start_ns;
  Report report{.facts = {{"window_ns", "Window", Kind::kDuration, window},
                          {"busy_ns", "Device busy", Kind::kDuration, idle.busy_ns},
                          {"idle_ns", "Device idle", Kind::kDuration, idle.idle_ns},
                          {"idle_percent", "Idle", Kind::kPercent, percent(idle.idle_ns, window)},
                          {"gap_count", "Gaps", Kind::kNumber, static_cast<int64_t>(idle.gaps.size())}}};
  Table causes{.name = "causes",
               .title = "Why the device did nothing",
               .columns = {{"cause", "Cause"},
                           {"idle_ns", "Idle", Kind::kDuration},
                           {"share_percent", "Of the window", Kind::kPercent},
                           {"meaning", "Meaning"}}};
  std::vector<size_t> order(analyze::kIdleCauseCount);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return idle.by_cause[a] > idle.by_cause[b]; });
  for (const size_t i : order) {
    if (idle.by_cause[i] == 0) continue;
    const auto cause = static_cast<analyze::IdleCause>(i);
    causes.add({std::string(analyze::name_of(cause)), idle.by_cause[i], percent(idle.by_cause[i], window),
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
  if (max_gaps != 0 && sorted.size() > max_gaps) sorted.resize(max_gaps);
  for (const analyze::IdleGap& gap : sorted) {
    gaps.add({gap.start_ns, gap.end_ns - gap.start_ns, std::string(analyze::name_of(gap.main_cause)), gap.main_ns,
              name_cell(model, gap.slice),
              gap.next == kNoRow ? Cell{} : Cell{std::string(model.text(model.device_slices.name[gap.next]))}});
  }
  report.tables = {std::move(causes), std::move(gaps)};
  note_device(study, report);
  return report;
}

Report launches_report(const Model& model, const analyze::Study& study) {
  const analyze::LaunchTable& launches = study.launches;
  Report report{.facts = {{"calls", "Launches", Kind::kNumber, launches.calls},
                          {"work", "Pieces of work", Kind::kNumber, launches.work},
                          {"call_ns", "Time in launches", Kind::kDuration, launches.call_ns},
                          {"median_delay_ns", "Median delay", Kind::kDuration, launches.median_delay_ns},
                          {"short_work", "Shorter than their launch", Kind::kNumber, launches.short_work},
                          {"short_work_percent", "", Kind::kPercent, percent(launches.short_work, launches.work)},
                          {"mean_queue_depth", "Mean queue depth", Kind::kNumber, launches.mean_depth},
                          {"max_queue_depth", "Most in the queue", Kind::kNumber, launches.max_depth},
                          {"empty_queue_ns", "Queue empty", Kind::kDuration, launches.empty_queue_ns},
                          {"full_queue_ns", "Queue full", Kind::kDuration, launches.full_queue_ns},
                          {"blocked_ns", "Blocked by a full queue", Kind::kDuration, launches.blocked_ns},
                          {"without_launch", "Without a launch", Kind::kNumber, launches.without_launch}}};
  Table table{.name = "launches",
              .columns = {{"call", "Call"},
                          {"calls", "Calls", Kind::kNumber},
                          {"work", "Work", Kind::kNumber},
                          {"call_ns", "Time", Kind::kDuration},
                          {"median_call_ns", "Median", Kind::kDuration},
                          {"median_delay_ns", "Median delay", Kind::kDuration},
                          {"max_delay_ns", "Longest delay", Kind::kDuration},
                          {"short_work", "Short", Kind::kNumber}},
              .hide_if_empty = true};
  for (const analyze::LaunchRow& row : launches.rows) {
    table.add({std::string(model.text(row.name)), row.calls, row.work, row.call_ns, row.median_call_ns,
               row.median_delay_ns, row.max_delay_ns, row.short_work});
  }
  report.tables = {std::move(table)};
  note_device(study, report);
  return report;
}

Report syncs_report(const Model& model, const analyze::Study& study) {
  Report report{.facts = {{"count", "Blocking calls", Kind::kNumber, study.syncs.in_window},
                          {"duration_ns", "Time in them", Kind::kDuration, study.syncs.duration_ns},
                          {"waited_ns", "Waiting for the device", Kind::kDuration, study.syncs.waited_ns}}};
  Table table{.name = "syncs",
              .columns = {{"start_ns", "Start", Kind::kDuration},
                          {"duration_ns", "Duration", Kind::kDuration},
                          {"waited_ns", "Waited", Kind::kDuration},
                          {"call", "Call"},
                          {"reason", "Reason"},
                          {"op", "Operator", Kind::kText, Align::kByKind, 40, true},
                          {"python", "Python", Kind::kText, Align::kByKind, 60, true},
                          {"in_steps", "In the steps", Kind::kTruth}},
              .hide_if_empty = true};
  for (const analyze::SyncRow& row : study.syncs.rows) {
    table.add({row.start_ns, row.duration_ns, row.waited_ns, name_cell(model, row.call),
               std::string(analyze::name_of(row.reason)), name_cell(model, row.op), name_cell(model, row.python),
               int64_t{row.in_window}});
  }
  report.tables = {std::move(table)};
  if (!study.graph.has_sync_records && study.has_device_work) {
    report.notes.push_back("what a call waited for is inferred: record with enable_cuda_sync_events=True to be sure");
  }
  return report;
}

Report critical_path_report(const Model& model, const analyze::Study& study, size_t max_pieces) {
  const analyze::CriticalPath& path = study.path;
  Report report{.facts = {{"total_ns", "Critical path", Kind::kDuration, path.total_ns},
                          {"judged_steps", "Steps", Kind::kNumber, study.steps.judged},
                          {"limit", "Limit", Kind::kText, std::string(analyze::words_for(study.bound.limit))}}};
  Table classes{
      .name = "classes",
      .title = "By class",
      .columns = {
          {"class", "Class"}, {"time_ns", "Time", Kind::kDuration}, {"share_percent", "Share", Kind::kPercent}}};
  for (size_t i = 0; i < analyze::kPathClassCount; ++i) {
    classes.add({std::string(analyze::name_of(static_cast<analyze::PathClass>(i))), path.by_class[i],
                 percent(path.by_class[i], path.total_ns)});
  }
  Table pieces{.name = "pieces",
               .title = "Longest pieces",
               .columns = {{"start_ns", "Start", Kind::kDuration},
                           {"duration_ns", "Duration", Kind::kDuration},
                           {"class", "Class"},
                           {"name", "What", Kind::kText, Align::kByKind, 60},
                           {"recorded_start_ns", "Recorded from", Kind::kDuration},
                           {"recorded_end_ns", "To", Kind::kDuration}},
               .hide_if_empty = true};
  std::vector<const analyze::PathPiece*> order;
  for (const analyze::PathPiece& piece : path.pieces) order.push_back(&piece);
  if (max_pieces != 0) {
    std::stable_sort(order.begin(), order.end(), [](const analyze::PathPiece* a, const analyze::PathPiece* b) {
      return a->end_ns - a->start_ns > b->end_ns - b->start_ns;
    });
    if (order.size() > max_pieces) order.resize(max_pieces);
  }
  for (const analyze::PathPiece* piece : order) {
    const bool on_device = piece->path_class == analyze::PathClass::kCompute ||
                           piece->path_class == analyze::PathClass::kCommunication ||
                           piece->path_class == analyze::PathClass::kCopy;
    Cell name;
    if (piece->row != kNoRow && on_device) name = std::string(model.text(model.device_slices.name[piece->row]));
    if (piece->row != kNoRow && piece->path_class == analyze::PathClass::kHost) {
      name = "until " + std::string(model.text(model.host_slices.name[piece->row]));
    }
    pieces.add({piece->start_ns, piece->end_ns - piece->start_ns, std::string(analyze::name_of(piece->path_class)),
                name, piece->recorded.start_ns, piece->recorded.end_ns});
  }
  report.tables = {std::move(classes), std::move(pieces)};
  if (study.undone.factor > 0) {
    report.notes.push_back("recording is undone: starts and durations are those of the replay, not of the trace");
  }
  return report;
}

Report whatif_report(const analyze::Study& study, const analyze::WhatIf& change) {
  const int64_t before = study.undone.step_ns;
  const int64_t gain = study.gain_ns(change);
  const int64_t after = before - gain;
  const double faster = after <= 0 ? 0 : static_cast<double>(before) / static_cast<double>(after);
  return {.facts = {{"step_ns", "Step now", Kind::kDuration, before},
                    {"recorded_ns", "While recording", Kind::kDuration, study.undone.recorded_ns},
                    {"changed_ns", "Step then", Kind::kDuration, after},
                    {"gain_ns", "Saved", Kind::kDuration, gain},
                    {"gain_percent", "Saved", Kind::kPercent, percent(gain, before)},
                    {"times_as_fast", "Times as fast", Kind::kNumber, faster}}};
}

}  // namespace firelane::report

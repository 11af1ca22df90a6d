// `firelane launches` and `firelane syncs`: the calls that queue work and those that wait for it.
#include "analyze/verdict/study.h"
#include "model/how_to_record.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

Result<Report> make_launches(const StudiedTrace& trace, const Arguments&) {
  const Model& model = trace.model();
  const auto& study = trace.get<analyze::study>();
  const analyze::LaunchTable& launches = study.launches;
  Report report{.facts = {{"calls", "Launches", Kind::kNumber, launches.calls},
                          {"work", "Pieces of work", Kind::kNumber, launches.work},
                          {"call_ns", "Time in launches", Kind::kDuration, launches.call_ns},
                          {"median_delay_ns", "Median delay", Kind::kDuration, launches.median_delay_ns},
                          {"short_work", "Shorter than their launch", Kind::kNumber, launches.short_work},
                          {"short_work_percent", "", Kind::kPercent, percent_of(launches.short_work, launches.work)},
                          {"mean_queue_depth", "Average queue depth", Kind::kNumber, launches.mean_depth},
                          {"max_queue_depth", "Deepest queue", Kind::kNumber, launches.max_depth},
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
  if (!study.has_device_work) report.notes.push_back("no device work in this trace: device idle time is unknown");
  if (study.has_device_work && launches.calls == 0) {
    // An empty queue would be a claim.
    for (Fact& fact : report.facts) {
      if (fact.name != "calls" && fact.name != "work" && fact.name != "without_launch") fact.value = Cell{};
    }
    report.notes.push_back("no launches in this trace: how long work was queued is unknown");
  }
  return report;
}

Result<Report> make_syncs(const StudiedTrace& trace, const Arguments&) {
  const Model& model = trace.model();
  const auto& study = trace.get<analyze::study>();
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
    table.add({row.start_ns, row.duration_ns, row.waited_ns, host_name(model, row.call),
               std::string(analyze::name_of(row.reason)), host_name(model, row.op), host_name(model, row.python),
               int64_t{row.in_window}});
  }
  report.tables = {std::move(table)};
  if (!study.graph.has_sync_records && study.has_device_work) {
    report.notes.push_back("what a call waited for is inferred, as there are no synchronization records; " +
                           how_to_record(model.info, RecordOption::kCudaSync));
  }
  return report;
}

}  // namespace

ReportSpec launches_report() {
  return {.name = "launches",
          .title = "Launches",
          .sentence = "Show what launches cost, how long work waits in the queue, and how deep the queue is.",
          .examples = {"firelane launches trace.json.gz", "firelane launches trace.json.gz --csv"},
          .tables = {{"launches"}},
          .make = make_launches,
          .of_times = true};
}

ReportSpec syncs_report() {
  return {.name = "syncs",
          .title = "Synchronization",
          .sentence = "List every call that waited for the device: how long it waited, and what called it.",
          .examples = {"firelane syncs trace.json.gz", "firelane syncs trace.json.gz --csv -o syncs.csv"},
          .tables = {{"syncs"}},
          .make = make_syncs};
}

}  // namespace firelane::report

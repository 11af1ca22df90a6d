#include "analyze/steps/input_pipeline.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

Result<Report> make_input(const StudiedTrace& trace, const Arguments&) {
  const Model& model = trace.model();
  const auto& input = trace.get<analyze::input_pipeline>();
  const bool has_steps = !input.steps.empty();
  Report report{
      .facts = {
          {"loader", "DataLoader", Kind::kText, std::string(analyze::name_of(input.loader))},
          {"median_wait_ns", "Wait per step, median", Kind::kDuration, cell_unless(input.median_wait_ns, kNoNumber)},
          {"usual_recorded_ns", "Step, recorded", Kind::kDuration, cell_unless(input.median_step_ns, kNoNumber)},
          {"wait_percent", "Waiting", Kind::kPercent,
           has_steps ? Cell{percent_of(input.median_wait_ns, input.median_step_ns)} : Cell{}},
          {"wait_ns", "Wait, all", Kind::kDuration, input.wait_ns},
          {"load_ns", "Loading in the same process", Kind::kDuration,
           input.loader == analyze::LoaderKind::kSingleProcess ? Cell{input.load_ns} : Cell{}}}};
  Table steps{.name = "steps",
              .title = "Steps",
              .columns = {{"step", "Step", Kind::kNumber},
                          {"duration_ns", "Duration", Kind::kDuration, Align::kByKind, 0, true},
                          {"wait_ns", "Wait", Kind::kDuration},
                          {"wait_percent", "Waiting", Kind::kPercent, Align::kByKind, 0, true},
                          {"loads", "Batches", Kind::kNumber},
                          {"transfer_ns", "Transfer", Kind::kDuration},
                          {"transfer_bytes", "Transferred", Kind::kBytes}},
              .hide_if_empty = true};
  for (const analyze::StepInput& step : input.steps) {
    steps.add({step.step, step.duration_ns, step.wait_ns, percent_of(step.wait_ns, step.duration_ns), step.loads,
               step.transfer_ns, step.transfer_bytes});
  }
  const analyze::StepInput& outside = input.outside;
  if (outside.loads > 0 || outside.transfer_ns > 0) {
    steps.add({Cell{}, Cell{}, outside.wait_ns, Cell{}, outside.loads, outside.transfer_ns, outside.transfer_bytes});
  }
  Table transfers{
      .name = "transfers",
      .title = "Copies from host to device",
      .columns = {{"name", "Name"},
                  {.name = "pinned",
                   .label = "Pinned",
                   .kind = Kind::kTruth,
                   .help = "From pinned (page-locked) host memory: faster, and the host does not have to wait."},
                  {"calls", "Calls", Kind::kNumber},
                  {"bytes", "Bytes", Kind::kBytes},
                  {"total_ns", "Total", Kind::kDuration},
                  {"bandwidth_gb_s", "Bandwidth", Kind::kBandwidth},
                  {"overlapped_ns", "While kernels ran", Kind::kDuration},
                  {.name = "overlapped_percent",
                   .label = "Overlapped",
                   .kind = Kind::kPercent,
                   .help = "Share of copy time during which kernels ran, so that it costs nothing."}},
      .hide_if_empty = true};
  for (const analyze::TransferRow& row : input.transfers) {
    transfers.add({std::string(model.text(row.name)), int64_t{row.pinned}, row.calls, row.bytes, row.total_ns,
                   row.bandwidth_gb_s(), row.overlapped_ns, percent_of(row.overlapped_ns, row.total_ns)});
  }
  report.tables = {std::move(steps), std::move(transfers)};
  if (input.loader == analyze::LoaderKind::kNone) report.notes.emplace_back("no DataLoader in this trace");
  if (input.loader == analyze::LoaderKind::kMultiProcess) {
    report.notes.emplace_back("worker processes are not in this trace: how busy they were is unknown");
  }
  if (!has_steps) report.notes.emplace_back(no_steps(model));
  return report;
}

}  // namespace

ReportSpec input_report() {
  return {.name = "input",
          .title = "Input",
          .sentence = "Show how data is loaded: waiting for the DataLoader, copies to the device, what overlaps.",
          .examples = {"firelane input trace.json.gz", "firelane input trace.json.gz --json"},
          .tables = {{"steps"}, {"transfers"}},
          .make = make_input};
}

}  // namespace firelane::report

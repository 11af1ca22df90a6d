#include "analyze/verdict/inference.h"

#include <fmt/format.h>

#include "model/how_to_record.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

Cell rate(double per_s) { return cell_unless(per_s, -1.0); }

Result<Report> make_inference(const StudiedTrace& trace, const Arguments& wanted) {
  const auto& inference = trace.get<analyze::find_inference>();
  const bool found = !inference.passes.empty();
  const auto if_found = [&](Cell cell) { return found ? std::move(cell) : Cell{}; };
  Report report{
      .facts = {{"prefills", "Prefill passes", Kind::kNumber, inference.prefills},
                {"requests", "Requests", Kind::kNumber, inference.requests},
                {"decodes", "Decode passes", Kind::kNumber, inference.decodes},
                {"found_by", "Found by", Kind::kText,
                 if_found(inference.by_annotation ? "annotations" : "shapes of the token embedding")},
                {"batch", "Sequences", Kind::kNumber, cell_unless(inference.batch, kNoNumber)},
                {"time_to_first_token_ns", "Time to first token", Kind::kDuration,
                 cell_unless(inference.time_to_first_token_ns, kNoNumber)},
                {"time_per_token_ns", "Time per token, median", Kind::kDuration,
                 cell_unless(inference.time_per_token_ns, kNoNumber)},
                {"min_token_ns", "Fastest token", Kind::kDuration, cell_unless(inference.min_token_ns, kNoNumber)},
                {"max_token_ns", "Slowest token", Kind::kDuration, cell_unless(inference.max_token_ns, kNoNumber)},
                {"decode_tokens_per_s", "Tokens/s, decode", Kind::kNumber, rate(inference.decode_tokens_per_s)},
                {"prefill_tokens_per_s", "Tokens/s, prefill", Kind::kNumber, rate(inference.prefill_tokens_per_s)},
                {"prefill_ns", "Prefill", Kind::kDuration, if_found(inference.prefill_ns)},
                {"decode_ns", "Decode", Kind::kDuration, if_found(inference.decode_ns)}}};
  Table table{.name = "passes",
              .columns = {{"pass", "Pass"},
                          {"batch", "Sequences", Kind::kNumber, Align::kByKind, 0, true},
                          {"tokens", "Tokens in", Kind::kNumber, Align::kByKind, 0, true},
                          {"context", "Context", Kind::kNumber, Align::kByKind, 0, true},
                          {"start_ns", "Start", Kind::kDuration},
                          {"duration_ns", "Duration", Kind::kDuration},
                          {"device_busy_ns", "Device busy", Kind::kDuration},
                          {"device_busy_percent", "Busy", Kind::kPercent},
                          {"kernels", "Kernels", Kind::kNumber}},
              .hide_if_empty = true};
  const size_t shown = shown_of(inference.passes.size(), wanted);
  for (size_t i = 0; i < shown; ++i) {
    const analyze::GenerationPass& pass = inference.passes[i];
    table.add({pass.prefill ? "prefill" : "decode", cell_unless(pass.batch, kNoNumber),
               cell_unless(pass.tokens, kNoNumber), cell_unless(pass.context, kNoNumber), pass.start_ns,
               pass.duration_ns, pass.device_busy_ns, percent_of(pass.device_busy_ns, pass.duration_ns), pass.kernels});
  }
  report.tables = {std::move(table)};
  note_left_out(report, inference.passes.size() - shown, "passes");
  if (inference.is_training) {
    report.notes.emplace_back("this program trains (it has a backward pass): there is no generation to analyze");
  } else if (!found) {
    report.notes.push_back(
        fmt::format("no generation found: {}, or annotate: with record_function('prefill'), record_function('decode')",
                    how_to_record(trace.model().info, RecordOption::kShapes)));
  }
  if (found) report.notes.emplace_back("times are as recorded, including the recorder's overhead");
  return report;
}

}  // namespace

ReportSpec inference_report() {
  return {
      .name = "inference",
      .title = "Inference",
      .sentence =
          "Analyze generation by a language model: prefill and decode, time to first token, time per token, tokens/s.",
      .examples = {"firelane inference trace.json.gz", "firelane inference trace.json.gz --rows 0 --csv"},
      .parameters = {Parameter::rows()},
      .shown_rows = 10,
      .tables = {{"passes"}},
      .make = make_inference};
}

}  // namespace firelane::report

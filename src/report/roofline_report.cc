#include "analyze/compute/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "advise/device_words.h"
#include "model/how_to_record.h"
#include "report/quantity.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

std::string capitalized(std::string_view word) {
  std::string out(word);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

Cell text_unless_unknown(std::string_view text) {
  if (text == "unknown") return {};
  return std::string(text);
}

Table utilization_table(const analyze::Roofline& roofline) {
  Table table{.name = "utilization",
              .title = "FLOPs utilization",
              .columns = {{"step", "Step", Kind::kNumber},
                          {"duration_ns", "Duration", Kind::kDuration},
                          {"flops", "TFLOP", Kind::kNumber},
                          {"mfu_percent", "MFU", Kind::kPercent}},
              .hide_if_empty = true};
  const auto add = [&](const analyze::UtilizationRow& row) {
    table.add({cell_unless(row.step, kNoNumber), row.duration_ns,
               row.flops == kNoNumber ? Cell{} : Cell{static_cast<double>(row.flops) / 1e12},
               cell_unless(row.mfu_percent, -1.0)});
  };
  table.columns[2].name = "tflop";
  for (const analyze::UtilizationRow& row : roofline.steps) add(row);
  if (roofline.steps.empty() && roofline.whole.flops > 0) add(roofline.whole);
  return table;
}

std::vector<Cell> cells(const Model& model, const analyze::Roofline& roofline, const analyze::RooflineRow& row) {
  const double share =
      roofline.work_ns == 0 ? 0 : 100.0 * static_cast<double>(row.device_ns) / static_cast<double>(roofline.work_ns);
  const bool has_bytes = row.bytes != kNoNumber && row.bytes > 0;
  const double intensity = has_bytes ? static_cast<double>(row.flops) / static_cast<double>(row.bytes) : 0;
  const bool has_alignment = row.kernel_class == analyze::KernelClass::kMatmul && row.dims != kNoString;
  return {std::string(model.text(row.op)),
          std::string(model.text(row.dims)),
          std::string(analyze::name_of(row.kernel_class)),
          text_unless_unknown(analyze::name_of(row.precision)),
          analyze::is_matrix_class(row.kernel_class) ? text_unless_unknown(analyze::name_of(row.tensor_cores)) : Cell{},
          row.calls,
          row.device_ns,
          share,
          row.flops > 0 ? Cell{row.flops_per_s() / 1e12} : Cell{},
          has_bytes ? Cell{row.bytes_per_s() / 1e9} : Cell{},
          row.flops > 0 && has_bytes ? Cell{intensity} : Cell{},
          text_unless_unknown(analyze::name_of(row.bound)),
          row.is_measured ? Cell{std::string("measured")} : Cell{},
          cell_unless(row.use.of(analyze::HardwareUnit::kDram), -1.0),
          cell_unless(row.use.of(analyze::HardwareUnit::kTensor), -1.0),
          cell_unless(row.use.of(analyze::HardwareUnit::kSm), -1.0),
          cell_unless(row.roof_percent(), -1.0),
          row.flops > 0 ? Cell{row.flops} : Cell{},
          has_bytes ? Cell{row.bytes} : Cell{},
          has_alignment ? Cell{int64_t{row.aligned}} : Cell{},
          std::string(model.text(row.kernel))};
}

// Bytes and FLOPs are those of the shapes: what exceeds the roof was not moved, or not computed.
void say_above_roof(const analyze::Roofline& roofline, std::vector<Note>& out) {
  bool is_cached = false;
  bool is_less_moved = false;
  bool is_less_computed = false;
  for (const analyze::RooflineRow& row : roofline.rows) {
    if (row.roof_percent() <= 100) continue;
    const bool is_busy = row.is_measured && row.bound == analyze::KernelBound::kMemory;
    is_less_computed |= row.roof == analyze::KernelBound::kCompute;
    is_less_moved |= row.roof == analyze::KernelBound::kMemory && is_busy;
    is_cached |= row.roof == analyze::KernelBound::kMemory && !is_busy;
  }
  if (is_cached) out.emplace_back("more than 100% of the memory roof: the data came from the cache, not from memory");
  if (is_less_moved) {
    out.emplace_back(
        "more than 100% of the memory roof, with memory as the measured limit: it moved less data than its shapes "
        "suggest");
  }
  if (is_less_computed) {
    out.emplace_back(
        "more than 100% of the compute roof: the kernel does fewer FLOPs than its shapes suggest (a causal mask, "
        "Winograd)");
  }
}

std::vector<Note> notes(const Model& model, const analyze::Roofline& roofline) {
  if (roofline.work_ns == 0) return {kNoDeviceWork};
  std::vector<Note> out;
  if (roofline.ops_without_shapes > 0 && roofline.ops_with_shapes == 0 && roofline.whole.flops <= 0) {
    out.push_back(fmt::format("FLOPs, and bytes of kernels, are unknown: no input shapes to compute them from; {}",
                              how_to_record(model.info, RecordOption::kShapes)));
  } else if (roofline.ops_without_shapes > 0) {
    out.push_back(fmt::format("op calls whose inputs are not in the trace: {}; {}", roofline.ops_without_shapes,
                              how_to_record(model.info, RecordOption::kShapes)));
  }
  if (roofline.peaks == nullptr) {
    out.push_back(
        roofline.device_name.empty()
            ? std::string("no roof: the trace does not name the device")
            : fmt::format("no roof: '{}' is not in the table of peaks (docs/peaks.md)", roofline.device_name));
  }
  say_above_roof(roofline, out);
  if (roofline.without_op_ns > 0) {
    out.push_back(fmt::format("device work that belongs to no op: {}", format_duration(roofline.without_op_ns)));
  }
  return out;
}

Result<Report> make_roofline(const StudiedTrace& trace, const Arguments& wanted) {
  const auto& roofline = trace.get<analyze::roofline>();
  const std::string matrix_unit(advise::matrix_unit(trace.model().info.accelerator));
  const analyze::DevicePeaks none;
  const analyze::DevicePeaks& peaks = roofline.peaks == nullptr ? none : *roofline.peaks;
  const auto positive = [](double value) { return value > 0 ? Cell{value} : Cell{}; };
  const auto part_of_matrix = [&](int64_t ns) {
    return roofline.matrix_ns == 0 ? Cell{}
                                   : Cell{100.0 * static_cast<double>(ns) / static_cast<double>(roofline.matrix_ns)};
  };
  Report report{
      .facts = {{"device", "Device", Kind::kText, std::string(roofline.device_name)},
                {"peak_fp32_tflops", "Peak fp32, TFLOP/s", Kind::kNumber, positive(peaks.fp32_tflops)},
                {"peak_tf32_tflops", "Peak tf32, TFLOP/s", Kind::kNumber, positive(peaks.tf32_tflops)},
                {"peak_bf16_tflops", "Peak bf16, TFLOP/s", Kind::kNumber, positive(peaks.bf16_tflops)},
                {"peak_fp16_tflops", "Peak fp16, TFLOP/s", Kind::kNumber, positive(peaks.half_tflops)},
                {"peak_fp8_tflops", "Peak fp8, TFLOP/s", Kind::kNumber, positive(peaks.fp8_tflops)},
                {"peak_bandwidth_gb_s", "Peak bandwidth", Kind::kBandwidth, positive(peaks.bandwidth_gb_s)},
                {"work_ns", "Device work", Kind::kDuration, roofline.work_ns},
                {"matrix_ns", "Matrix kernels", Kind::kDuration, roofline.matrix_ns},
                {"tensor_core_percent", "Matrix kernels on " + matrix_unit, Kind::kPercent,
                 part_of_matrix(roofline.tensor_core_ns)},
                {"tensor_core_unknown_percent", "", Kind::kPercent, part_of_matrix(roofline.tensor_core_unknown_ns)}}};
  Table table{
      .name = "roofline",
      .title = "Ops against the roof",
      .columns = {{"op", "Op", Kind::kText, Align::kByKind, 32},
                  {"dims", "Inputs", Kind::kText, Align::kByKind, 36},
                  {"class", "Class"},
                  {"precision", "Precision", Kind::kText, Align::kByKind, 0, true},
                  {"tensor_cores", capitalized(matrix_unit), Kind::kText, Align::kByKind, 0, true,
                   "Whether the kernel used them."},
                  {"calls", "Calls", Kind::kNumber},
                  {"device_ns", "Device time", Kind::kDuration},
                  {"share_percent", "Share", Kind::kPercent},
                  {"tflop_s", "TFLOP/s", Kind::kNumber, Align::kByKind, 0, true},
                  {"gb_s", "Memory", Kind::kBandwidth, Align::kByKind, 0, true},
                  {"flops_per_byte", "FLOP/B", Kind::kNumber, Align::kByKind, 0, true,
                   "Arithmetic intensity: FLOPs per byte read or written. Low means bound by memory bandwidth."},
                  {"bound", "Bound by", Kind::kText, Align::kByKind, 0, true},
                  {"bound_from", "Known by", Kind::kText, Align::kByKind, 0, true,
                   "Measured by hardware counters; empty: estimated from shapes and the device's peaks."},
                  {"dram_percent", "DRAM", Kind::kPercent, Align::kByKind, 0, true,
                   "DRAM traffic in percent of its peak, as hardware counters measured it."},
                  {"tensor_percent", "Tensor cores used", Kind::kPercent, Align::kByKind, 0, true,
                   "How much of the time tensor cores were active, as hardware counters measured it."},
                  {"sm_percent", "SMs active", Kind::kPercent, Align::kByKind, 0, true,
                   "How much of the time SMs had work, as hardware counters measured it."},
                  {"roof_percent", "Of its roof", Kind::kPercent, Align::kByKind, 0, true,
                   "Share of what the hardware can reach at this arithmetic intensity."},
                  {"flops", "FLOPs", Kind::kNumber, Align::kByKind, 0, true},
                  {"bytes", "Bytes", Kind::kBytes, Align::kByKind, 0, true},
                  {"aligned", "Aligned", Kind::kTruth, Align::kByKind, 0, true},
                  {"kernel", "Longest kernel", Kind::kText, Align::kByKind, 40}},
      .hide_if_empty = true};
  const size_t shown = shown_of(roofline.rows.size(), wanted);
  for (size_t i = 0; i < shown; ++i) table.add(cells(trace.model(), roofline, roofline.rows[i]));
  report.tables = {std::move(table), utilization_table(roofline)};
  report.notes = notes(trace.model(), roofline);
  note_left_out(report, roofline.rows.size() - shown, "rows");
  return report;
}

}  // namespace

ReportSpec roofline_report() {
  return {.name = "roofline",
          .title = "Roofline",
          .sentence =
              "Show FLOP/s and bandwidth per op and shape against the device's peak, and FLOPs utilization per step.",
          .examples = {"firelane roofline trace.json.gz --rows 10", "firelane roofline trace.json.gz --json"},
          .parameters = {Parameter::rows()},
          .shown_rows = 30,
          .tables = {{"roofline"}, {"utilization"}},
          .make = make_roofline};
}

}  // namespace firelane::report

#include "analyze/compute/fusion.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/how_to_record.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

std::string short_name(std::string_view op) { return std::string(op.starts_with("aten::") ? op.substr(6) : op); }

std::string chain_text(const Model& model, const analyze::FusionChain& chain) {
  std::string text;
  for (const analyze::FusionMember& member : chain.members) {
    text += (text.empty() ? "" : " > ") + short_name(model.text(member.op));
  }
  return text;
}

Result<Report> make_fusion(const StudiedTrace& trace, const Arguments& wanted) {
  const Model& model = trace.model();
  const auto& table = trace.get<analyze::fusion_table>();
  int64_t saved_ns = 0;
  int64_t saved_bytes = 0;
  int64_t saved_launches = 0;
  for (const analyze::FusionChain& chain : table.chains) {
    saved_ns += chain.saved_ns;
    saved_bytes += chain.saved_bytes;
    saved_launches += chain.saved_launches;
  }
  Report report{.facts = {{"kernels", "Kernels", Kind::kNumber, table.kernels},
                          {"fusible_kernels", "Kernels that could be fused", Kind::kNumber, table.fusible_kernels},
                          {"fusible_ns", "Their time", Kind::kDuration, table.fusible_ns},
                          {"chained_kernels", "Kernels in a chain", Kind::kNumber, table.chained_kernels},
                          {"chain_count", "Chains", Kind::kNumber, static_cast<int64_t>(table.chains.size())},
                          {"saved_launches", "Launches saved", Kind::kNumber, saved_launches},
                          {"saved_bytes", "Traffic saved", Kind::kBytes, saved_bytes},
                          {"saved_ns", "Time saved, at most", Kind::kDuration, saved_ns}}};
  Table out{.name = "chains",
            .columns = {{"chain", "Chain", Kind::kText, Align::kByKind, 72},
                        {"phase", "Phase"},
                        {"elements", "Elements", Kind::kNumber},
                        {"times", "Times", Kind::kNumber},
                        {"device_ns", "Device time", Kind::kDuration},
                        {"saved_launches", "Launches saved", Kind::kNumber},
                        {"saved_bytes", "Traffic saved", Kind::kBytes},
                        {"saved_ns", "Time saved", Kind::kDuration},
                        {"dims", "First inputs", Kind::kText, Align::kByKind, 32}},
            .hide_if_empty = true};
  const size_t shown = shown_of(table.chains.size(), wanted);
  for (size_t i = 0; i < shown; ++i) {
    const analyze::FusionChain& chain = table.chains[i];
    out.add({chain_text(model, chain), std::string(analyze::name_of(chain.phase)), chain.elements, chain.times,
             chain.device_ns, chain.saved_launches, chain.saved_bytes, chain.saved_ns,
             std::string(model.text(chain.dims))});
  }
  report.tables = {std::move(out)};
  note_left_out(report, table.chains.size() - shown, "chains");
  if (table.kernels == 0) {
    report.notes.emplace_back(kNoDeviceWork);
  }
  if (table.without_shapes > 0) {
    report.notes.push_back(fmt::format("kernels that could be fused, but whose inputs are not in the trace: {}; {}",
                                       table.without_shapes, how_to_record(model.info, RecordOption::kShapes)));
  }
  return report;
}

}  // namespace

ReportSpec fusion_report() {
  return {.name = "fusion",
          .title = "Fusion",
          .sentence =
              "Find chains of small kernels that one kernel could replace: launches, traffic and time it would save.",
          .examples = {"firelane fusion trace.json.gz", "firelane fusion trace.json.gz --rows 0 --json"},
          .parameters = {Parameter::rows()},
          .shown_rows = 20,
          .tables = {{"chains"}},
          .make = make_fusion};
}

}  // namespace firelane::report

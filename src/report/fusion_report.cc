#include "report/fusion_report.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

Report fusion_report(const Model& model, const analyze::FusionTable& table, const FusionReportOptions& options) {
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
                          {"fusible_ns", "Time of these", Kind::kDuration, table.fusible_ns},
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
  const size_t shown = options.max_rows == 0 ? table.chains.size() : std::min(options.max_rows, table.chains.size());
  for (size_t i = 0; i < shown; ++i) {
    const analyze::FusionChain& chain = table.chains[i];
    out.add({chain_text(model, chain), std::string(analyze::name_of(chain.phase)), chain.elements, chain.times,
             chain.device_ns, chain.saved_launches, chain.saved_bytes, chain.saved_ns,
             std::string(model.text(chain.dims))});
  }
  report.tables = {std::move(out)};
  if (shown < table.chains.size()) {
    report.notes.push_back(fmt::format("{} more chains: --rows 0 shows all", table.chains.size() - shown));
  }
  if (table.kernels == 0) {
    report.notes.emplace_back(
        "no kernels in this trace: record with activities=[..., ProfilerActivity.CUDA] on a machine with a GPU");
  }
  if (table.without_shapes > 0) {
    report.notes.push_back(fmt::format(
        "kernels that could be fused but whose inputs the trace does not give: {}; record with record_shapes=True",
        table.without_shapes));
  }
  return report;
}

}  // namespace firelane::report

#include "advise/on_cpu.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "advise/evidence.h"
#include "advise/notes.h"
#include "advise/text.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

std::vector<analyze::CpuOp> ops_of(const Context& context) {
  if (context.study == nullptr || context.study->host->chains.empty()) return {};
  return analyze::outermost_ops(context.model, context.study->host->chains[0], context.window);
}

bool is_batched_matmul(const Model& model, const analyze::CpuOp& op) {
  const std::string_view name = model.text(model.host_slices.name[op.row]);
  return name == "aten::bmm" || name == "aten::baddbmm" || name == "aten::matmul" || name == "aten::einsum";
}

// The op's neighbour in a direction that is a batched matmul, or SIZE_MAX.
size_t matmul_near(const Model& model, const std::vector<analyze::CpuOp>& ops, size_t at, int step) {
  constexpr int kReach = 6;  // scale, mask, cast, dropout between softmax and matmul
  for (int i = 1; i <= kReach; ++i) {
    const ptrdiff_t place = static_cast<ptrdiff_t>(at) + step * i;
    if (place < 0 || place >= static_cast<ptrdiff_t>(ops.size())) break;
    if (is_batched_matmul(model, ops[static_cast<size_t>(place)])) return static_cast<size_t>(place);
  }
  return SIZE_MAX;
}

}  // namespace

std::vector<Finding> cpu_unfused_attention(const Context& context) {
  const Model& model = context.model;
  const std::vector<analyze::CpuOp> ops = ops_of(context);
  Evidence evidence(context);
  for (size_t at = 0; at < ops.size(); ++at) {
    const std::string_view name = model.text(model.host_slices.name[ops[at].row]);
    if (name != "aten::softmax" && name != "aten::_softmax_backward_data") continue;
    const size_t before = matmul_near(model, ops, at, -1);
    const size_t after = matmul_near(model, ops, at, +1);
    if (before == SIZE_MAX || after == SIZE_MAX) continue;
    // What the shortest step between takes to read and write the scores, the matmuls save half or once each.
    int64_t pass_ns = INT64_MAX;
    for (size_t i = before + 1; i < after; ++i) {
      evidence.add_call(ops[i].row, 0.1, 0);
      evidence.add_way_to(ops[i].row);
      pass_ns = std::min(pass_ns, context.took_ns(ops[i].row));
    }
    for (const size_t matmul : {before, after}) {
      const auto taken_ns = static_cast<double>(std::max<int64_t>(1, context.took_ns(ops[matmul].row)));
      const double saved = std::min(1.0, static_cast<double>(pass_ns) / taken_ns);
      evidence.add_call(ops[matmul].row, 1 - saved / 2, 1 - saved);
    }
  }
  if (evidence.empty()) return {};
  Finding finding{
      .id = "attention-unfused",
      .try_text = "use fused attention: it never writes the score matrix to memory",
      .try_code = "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)",
      .confidence = Confidence::kMedium,
      .confirm_by = "run it and compare step times: the fused operator also changes how long the matmuls take"};
  evidence.fill(finding);
  finding.title = "attention is computed in separate steps, which write and read the score matrix: " +
                  short_percent(finding.share_of_step) + " of a step with its matmuls";
  return {finding};
}

namespace {

// Each within a step: no compiler joins what two of them do.
std::vector<std::vector<analyze::CpuOp>> chains_of(const Context& context) {
  std::vector<std::vector<analyze::CpuOp>> chains;
  const analyze::Study& study = *context.study;
  if (study.host->chains.empty()) return chains;
  const HostSlices& slices = context.model.host_slices;
  const std::vector<analyze::CpuOp> ops =
      analyze::outermost_ops(context.model, study.host->chains[0], {INT64_MIN, INT64_MAX});  // in order of time
  const auto first_from = [&](int64_t time_ns) {
    return std::partition_point(ops.begin(), ops.end(),
                                [&](const analyze::CpuOp& op) { return slices.start_ns[op.row] < time_ns; });
  };
  for (const analyze::FoundStep& step : study.steps.steps) {
    if (step.warm_up) continue;
    const std::span<const analyze::CpuOp> in_step(first_from(step.start_ns), first_from(step.end_ns));
    for (auto& chain : analyze::fusible_chains(context.model, in_step)) chains.push_back(std::move(chain));
  }
  return chains;
}

// The way to an op that would not be called by itself. A node of the backward pass that does little else goes with it.
void add_way_of(const Context& context, Row op, Evidence& evidence) {
  const HostSlices& host = context.model.host_slices;
  const Row node = outermost_op(context.model, op);
  if (node == op || 2 * host.duration_ns[op] <= host.duration_ns[node]) return evidence.add_way_to(op);
  evidence.add_stretch(host.lane[op], host.start_ns[node], host.start_ns[op]);
  evidence.add_stretch(host.lane[op], host.end_ns(op), host.end_ns(node));
  evidence.add_way_to(node);
}

}  // namespace

std::vector<Finding> cpu_unfused_chains(const Context& context) {
  Evidence evidence(context);
  size_t longest = 0;
  for (const std::vector<analyze::CpuOp>& chain : chains_of(context)) {
    int64_t total_ns = 0;
    int64_t longest_ns = 0;
    for (const analyze::CpuOp& op : chain) {
      total_ns += context.took_ns(op.row);
      longest_ns = std::max(longest_ns, context.took_ns(op.row));
    }
    if (total_ns == 0) continue;
    // One loop takes at least as long as the longest; it may take half as long again for the others' arithmetic.
    const double best = static_cast<double>(longest_ns) / static_cast<double>(total_ns);
    const double worst = (1 + best) / 2;
    for (const analyze::CpuOp& op : chain) {
      evidence.add_call(op.row, worst, best);
      if (op.row != chain.front().row) add_way_of(context, op.row, evidence);
    }
    longest = std::max(longest, chain.size());
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "pointwise-unfused",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "run with torch.compile and compare step times"};
  advise_fusing(context.model, "use one operator for what several do in a row, or let a compiler fuse them", finding);
  evidence.fill(finding);
  finding.title = "chains of up to " + std::to_string(longest) + " operators on the same data take " +
                  short_percent(finding.share_of_step) + " of a step; fused, the data is read and written once";
  finding.part_of = "overhead";
  return {finding};
}

}  // namespace firelane::advise

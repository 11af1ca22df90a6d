// Unneeded work: attention over positions that a mask excludes.
#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/device/kernel_traits.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/study.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

// Share of an attention kernel's time that remains without the mask: half of the scores need not be computed, and the
// mask is not read. Kernels that are made for masks (not cuDNN's) are slower still.
struct MaskCost {
  double low, high;
};
MaskCost mask_cost(std::string_view kernel) {
  return contains(kernel, "fmha") || contains(kernel, "AttentionKernel") ? MaskCost{.low = 0.45, .high = 0.25}
                                                                         : MaskCost{.low = 0.5, .high = 0.36};
}

// The shape of a mask that all sequences and heads share, of as many rows as columns; {} of others and of none.
analyze::Dims shared_mask(const Model& model, Row op) {
  const std::vector<analyze::Dims> dims = analyze::parse_input_dims(input_dims_text(model, op));
  if (dims.size() < 4 || dims[0].size() < 3 || dims[3].size() < 2) return {};
  const analyze::Dims& mask = dims[3];
  const size_t rank = mask.size();
  const bool is_shared = std::all_of(mask.begin(), mask.end() - 2, [](int64_t size) { return size == 1; });
  return is_shared && mask[rank - 1] == mask[rank - 2] && mask[rank - 1] > 1 ? mask : analyze::Dims{};
}

// For operators on the CPU, which process all scores as well: half of them, or far more where short documents share a
// row.
constexpr MaskCost kOnCpu = {.low = 0.6, .high = 0.25};
// Shorter rows fit into few of the blocks that the CPU's kernel goes through: there is hardly one to leave out.
constexpr int64_t kLeastOnCpu = 192;

// The calls themselves and those of their backward pass, which take the mask as well.
void add_on_cpu(const Context& context, const std::set<analyze::Dims>& squares, Evidence& evidence) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  int64_t until_ns = INT64_MIN;
  for (Row row = 0; row < host.size(); ++row) {
    if (row > 0 && host.lane[row] != host.lane[row - 1]) until_ns = INT64_MIN;
    if (host.kind[row] != HostKind::kOp || host.start_ns[row] < until_ns) continue;
    if (!contains(model.text(host.name[row]), "aten::") || !contains(model.text(host.name[row]), "scaled_dot_product"))
      continue;
    const std::vector<analyze::Dims> dims = analyze::parse_input_dims(input_dims_text(model, row));
    if (std::none_of(dims.begin(), dims.end(), [&](const auto& each) { return squares.contains(each); })) continue;
    evidence.add_call(row, kOnCpu.low, kOnCpu.high);
    until_ns = host.end_ns(row);
  }
}

std::vector<Finding> find_attention_mask(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::unordered_set<Row> masked;  // calls of scaled_dot_product_attention
  std::unordered_set<int64_t> numbers;
  std::set<analyze::Dims> squares;
  int64_t longest = 0;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || model.text(host.name[row]) != "aten::scaled_dot_product_attention") continue;
    const analyze::Dims mask = shared_mask(model, row);
    if (mask.empty()) continue;
    masked.insert(row);
    squares.insert(mask);
    longest = std::max(longest, mask.back());
    const int64_t number = model.op_details.sequence_number[model.op_detail(row)];
    if (number != kNoNumber && number >= 0) numbers.insert(number);
  }
  if (masked.empty()) return {};
  const auto belongs = [&](Row op) {
    for (Row row = op; row != kNoRow; row = host.parent[row]) {
      if (masked.contains(row)) return true;
      const bool is_node = host.kind[row] == HostKind::kOp &&
                           contains(model.text(host.name[row]), "ScaledDotProduct") &&
                           contains(model.text(host.name[row]), "Backward");
      if (!is_node) continue;
      const Row detail = model.op_detail(row);
      if (detail == kNoRow) continue;
      for (Row of = model.op_details.forward[detail]; of != kNoRow; of = host.parent[of]) {
        if (masked.contains(of)) return true;
      }
      if (numbers.contains(model.op_details.sequence_number[detail])) return true;
    }
    return false;
  };
  Evidence evidence(context);
  if (!context.has_device_work && longest >= kLeastOnCpu) add_on_cpu(context, squares, evidence);
  analyze::TraitsOfNames traits(model);
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row op = model.device_slices.op[row];
    if (model.device_slices.kind[row] != DeviceKind::kKernel || op == kNoRow) continue;
    const std::string_view name = model.text(model.device_slices.name[row]);
    if (traits.of(model.device_slices.name[row]).kernel_class == analyze::KernelClass::kAttention) {
      if (!belongs(op)) continue;
      const MaskCost cost = mask_cost(name);
      evidence.add_device(row, cost.low, cost.high);
      continue;
    }
    // What makes the mask, and turns it into a bias.
    const std::vector<analyze::Dims> dims = analyze::parse_input_dims(input_dims_text(model, op));
    const bool makes_mask =
        std::any_of(dims.begin(), dims.end(), [&](const auto& each) { return squares.contains(each); });
    if (!makes_mask) continue;
    evidence.add_device(row, 0, 0);
    evidence.add_host(op);
  }
  if (evidence.empty()) return {};
  Finding finding{
      .id = "attention-mask",
      .try_text = "if the mask is causal, pass is_causal=True instead: the kernel then skips half of the work",
      .try_code = "F.scaled_dot_product_attention(q, k, v, is_causal=True)  # other masks: flex_attention",
      .confidence = Confidence::kMedium,
      .confirm_by = "look at the mask: a trace shows its shape, not its values"};
  evidence.fill(finding);
  finding.title = "attention gets a mask of " + std::to_string(longest) + " x " + std::to_string(longest) +
                  (context.has_device_work ? " as a tensor, which the fastest kernels do not support: it takes "
                                           : " as a tensor, and computes scores that are then masked out: it takes ") +
                  short_percent(finding.share_of_step) + " of a step";
  if (!context.has_device_work) {
    finding.confidence = Confidence::kLow;  // how much it hides decides
    finding.try_text = "if the mask is causal, pass is_causal=True instead; split documents that share a row";
    finding.try_code = "F.scaled_dot_product_attention(q, k, v, is_causal=True)  # x.view(rows * documents, -1, width)";
  }
  return {finding};
}

}  // namespace

std::vector<Rule> waste_rules() {
  return {
      {"attention-mask", "waste", 0.03, true,
       "scaled_dot_product_attention got its mask as a tensor. The fastest kernels do not support one: others read\n"
       "it for every score, and compute scores that are then masked out. With is_causal=True the kernel knows which\n"
       "half to skip.\n\n"
       "What to do: is_causal=True for a causal mask. For sequences packed into one row, or a sliding window:\n"
       "flex_attention with a block mask. For padding: sort by length, or use nested tensors.\n\n"
       "When not: the mask is none of these. Only masks that all sequences share are reported: others differ from\n"
       "sample to sample. On a CPU, sequences of fewer than 192 positions are excluded, because a causal kernel\n"
       "skips next to nothing of them.",
       find_attention_mask},
  };
}

}  // namespace firelane::advise

// Attention that is computed in separate steps.
#include <string>
#include <unordered_map>
#include <vector>

#include "advise/evidence.h"
#include "advise/kernel_evidence.h"
#include "advise/on_cpu.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/device/kernel_traits.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

bool is_batched_matmul(std::string_view name) {
  return name == "aten::bmm" || name == "aten::baddbmm" || name == "aten::matmul";
}

// The op of that name around `op`, itself included; kNoRow when there is none.
Row around(const Model& model, Row op, std::string_view name) {
  for (Row row = op; row != kNoRow; row = model.host_slices.parent[row]) {
    if (model.text(model.host_slices.name[row]) == name) return row;
  }
  return kNoRow;
}

// What a fused kernel takes, as a part of what the products take alone: it does not write the scores, and skips what
// a causal mask takes out.
struct ProductKeep {
  double low, high;
};
constexpr ProductKeep kPlainProduct = {.low = 0.7, .high = 0.36};
constexpr ProductKeep kMaskedProduct = {.low = 0.35, .high = 0.2};

bool is_mask(std::string_view op) {
  return contains(op, "masked_fill") || op == "aten::where" || op == "aten::tril" || op == "aten::triu";
}

// Kernels of one stream with their ops, around a softmax.
class Stream {
 public:
  Stream(const Model& model, size_t lane, analyze::TraitsOfNames& traits) : model_(model), traits_(traits) {
    const DeviceSlices& device = model.device_slices;
    for (Row row = model.lanes.device_begin[lane]; row < model.lanes.device_end[lane]; ++row) {
      if (device.kind[row] == DeviceKind::kKernel) kernels.push_back(row);
    }
  }

  std::string_view op_name(size_t at) const {
    const Row op = model_.device_slices.op[kernels[at]];
    return op == kNoRow ? std::string_view{} : model_.text(model_.host_slices.name[op]);
  }

  // The nearest batched product before (-1) or after (+1) it; SIZE_MAX when another product, or too much, lies between.
  size_t product(size_t at, int step) {
    constexpr size_t kReach = 14;  // scale, making and applying a mask, casts, dropout
    for (size_t i = 1; i <= kReach; ++i) {
      const ptrdiff_t place = static_cast<ptrdiff_t>(at) + step * static_cast<ptrdiff_t>(i);
      if (place < 0 || place >= static_cast<ptrdiff_t>(kernels.size())) return SIZE_MAX;
      const auto found = static_cast<size_t>(place);
      if (is_batched_matmul(op_name(found))) return found;
      if (analyze::is_matrix_class(traits_.of(model_.device_slices.name[kernels[found]]).kernel_class)) break;
    }
    return SIZE_MAX;
  }

  std::vector<Row> kernels;

 private:
  const Model& model_;
  analyze::TraitsOfNames& traits_;
};

// Softmax between two batched matmuls: attention done by hand.
std::vector<Finding> find_unfused_attention(const Context& context) {
  if (!context.has_device_work) return cpu_unfused_attention(context);
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  Evidence evidence(context);
  analyze::TraitsOfNames traits(model);
  std::vector<Row> products;
  bool masked = false;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    Stream stream(model, lane, traits);
    const std::vector<Row>& kernels = stream.kernels;
    for (size_t at = 0; at < kernels.size(); ++at) {
      const std::string_view name = stream.op_name(at);
      if (name != "aten::_softmax" && name != "aten::_softmax_backward_data") continue;
      const size_t before = stream.product(at, -1);
      const size_t after = stream.product(at, +1);
      if (before == SIZE_MAX || after == SIZE_MAX) continue;
      // The products read and write the matrix of scores, too; the backward has two on each side.
      for (const size_t product : {before, after}) products.push_back(kernels[product]);
      if (name != "aten::_softmax") {
        if (before > 0 && is_batched_matmul(stream.op_name(before - 1))) products.push_back(kernels[before - 1]);
        if (after + 1 < kernels.size() && is_batched_matmul(stream.op_name(after + 1)))
          products.push_back(kernels[after + 1]);
      }
      // Copies that make its inputs contiguous.
      for (const size_t product : {before, after}) {
        const Row matmul = around(model, device.op[kernels[product]], "aten::matmul");
        for (size_t i = product; matmul != kNoRow && i-- > 0;) {
          if (around(model, device.op[kernels[i]], "aten::matmul") != matmul) break;
          if (i < before || i > after) evidence.add_device(kernels[i], 0.15, 0);
        }
      }
      for (size_t i = before + 1; i < after; ++i) {
        masked = masked || is_mask(stream.op_name(i));
        evidence.add_device(kernels[i], 0.15, 0);
        if (device.op[kernels[i]] != kNoRow) evidence.add_host(device.op[kernels[i]]);
      }
    }
  }
  if (evidence.empty()) return {};
  const ProductKeep keep = masked ? kMaskedProduct : kPlainProduct;
  for (const Row product : products) evidence.add_beside(product, keep.low, keep.high);
  Finding finding{.id = "attention-unfused",
                  .try_text = "use fused attention: it never writes the score matrix to memory",
                  .try_code = "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)",
                  .confidence = Confidence::kMedium,
                  .confirm_by = context.flag(RecordOption::kShapes) + " and memory, to see what the scores take",
                  .part_of = kFusion};
  evidence.fill(finding);
  finding.title = "attention is computed in separate steps: softmax, masks and casts between its matmuls take " +
                  short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> attention_rules() {
  return {
      {"attention-unfused", "kernels", 0.03, true,
       "Attention written as matmul, softmax, matmul writes and reads the matrix of scores (sequence x sequence)\n"
       "several times. A fused kernel keeps it on the chip, which takes less time, and memory that grows with the\n"
       "sequence, not with its square.\n\n"
       "What to do: torch.nn.functional.scaled_dot_product_attention, or FlexAttention for custom masks and biases.\n\n"
       "When not: the scores themselves are needed (to plot them, or for a bias that the fused kernels do not\n"
       "support).",
       find_unfused_attention},
  };
}

}  // namespace firelane::advise

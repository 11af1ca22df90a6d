// What kernels could do better: precision, tensor cores, fused attention, fused chains, copies.
#include <algorithm>
#include <string>
#include <unordered_set>

#include "advise/evidence.h"
#include "advise/on_cpu.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/compute/copies.h"
#include "analyze/compute/fusion.h"
#include "analyze/device/device_peaks.h"
#include "analyze/device/kernel_traits.h"
#include "analyze/ops/flops.h"
#include "analyze/ops/op_tensors.h"

namespace firelane::advise {

namespace {

constexpr double kRealPart = 0.6;   // of a peak that real matmuls reach
constexpr double kLeastPart = 0.3;  // those of awkward sizes
constexpr double kShortestKernelNs = 2000;
constexpr double kNarrowKeep = 0.7;  // of a kernel's time in fp32 that it takes in 16 bits
constexpr const char* kFusion =
    "fusion";  // what a compiler would join: findings with a name of their own are part of it

bool name_has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

// Kernels with their class, in the judged steps; `visit(row, traits)`.
template <typename Visit>
void for_kernels(const Context& context, const Visit& visit) {
  const DeviceSlices& device = context.model.device_slices;
  analyze::TraitsOfNames traits(context.model);
  for (Row row = 0; row < device.size(); ++row) {
    if (device.kind[row] != DeviceKind::kKernel || !context.holds(row)) continue;
    visit(row, traits.of(device.name[row]));
  }
}

// The part of its time that a matmul kernel would take at `part_of_peak` of the device's peak; 1 when it is as fast, or
// when its work is not known.
class FasterMatmul {
 public:
  explicit FasterMatmul(const Model& model) : model_(model), flops_(model) {}

  double keep(Row kernel, analyze::KernelClass kernel_class, const analyze::DevicePeaks& peaks, double tflops,
              double part_of_peak) {
    const Row op = model_.device_slices.op[kernel];
    const int64_t op_flops = op == kNoRow ? 0 : flops_.of(op).op_flops;
    if (op_flops <= 0) return 1;
    const int64_t bytes = analyze::op_bytes(model_.text(model_.host_slices.name[op]), kernel_class,
                                            analyze::input_tensors(model_, op), op_flops);
    const double memory_ns = bytes == kNoNumber ? 0 : static_cast<double>(bytes) / peaks.bandwidth_gb_s;
    const double compute_ns = static_cast<double>(op_flops) / (part_of_peak * tflops * 1e3);
    const double then_ns = std::max({memory_ns, compute_ns, kShortestKernelNs});
    return std::min(1.0, then_ns / static_cast<double>(model_.device_slices.duration_ns[kernel]));
  }

 private:
  const Model& model_;
  analyze::FlopsTable flops_;
};

// fp32 matmuls and convolutions that run without tensor cores although the device has them.
std::vector<Finding> find_fp32_matmul(const Context& context) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  FasterMatmul faster(model);
  Evidence evidence(context);
  for_kernels(context, [&](Row row, const analyze::KernelTraits& traits) {
    const bool plain_fp32 = analyze::is_matrix_class(traits.kernel_class) &&
                            traits.precision == analyze::Precision::kFp32 &&
                            traits.tensor_cores == analyze::TensorCores::kNo;
    if (!plain_fp32 || name_has(model.text(device.name[row]), "gemv")) return;
    const analyze::DevicePeaks* peaks = analyze::peaks_of(model, device.device[row]);
    if (peaks == nullptr) return;
    const double fast_tflops = peaks->tf32_tflops > 0 ? peaks->tf32_tflops : peaks->half_tflops;
    if (fast_tflops <= peaks->fp32_tflops) return;
    const double keep = faster.keep(row, traits.kernel_class, *peaks, fast_tflops, kRealPart);
    if (keep >= 1) return;
    evidence.add_device(row, faster.keep(row, traits.kernel_class, *peaks, fast_tflops, kLeastPart), keep);
  });
  if (evidence.empty()) return {};
  Finding finding{.id = "fp32-matmul",
                  .try_text = "let matrix multiplications use tensor cores: TF32 (one line), or bf16 with autocast",
                  .try_code = "torch.set_float32_matmul_precision('high')",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare the loss over some hundred steps: TF32 keeps 10 bits of each factor"};
  evidence.fill(finding);
  finding.title =
      "fp32 matrix multiplications without tensor cores take " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

// 16-bit matmuls that do not run on tensor cores, or whose sizes make them slow there.
std::vector<Finding> find_tensor_cores(const Context& context) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  FasterMatmul faster(model);
  Evidence evidence(context);
  Row example = kNoRow;
  for_kernels(context, [&](Row row, const analyze::KernelTraits& traits) {
    if (traits.kernel_class != analyze::KernelClass::kMatmul || device.op[row] == kNoRow) return;
    const std::vector<analyze::OpTensor> inputs = analyze::input_tensors(model, device.op[row]);
    if (inputs.size() < 2 || inputs.back().element_bytes > 2 || inputs.back().dims.size() < 2) return;
    if (name_has(model.text(device.name[row]), "gemv")) return;  // one row or column: bound by memory
    if (traits.tensor_cores != analyze::TensorCores::kNo && analyze::are_aligned(inputs)) return;
    const analyze::DevicePeaks* peaks = analyze::peaks_of(model, device.device[row]);
    const auto keep = [&](double part_of_peak, double unknown) {
      if (peaks == nullptr || peaks->half_tflops <= 0) return unknown;
      return faster.keep(row, traits.kernel_class, *peaks, peaks->half_tflops, part_of_peak);
    };
    const double keep_high = keep(kRealPart, 0.4);
    if (keep_high >= 1) return;
    if (example == kNoRow || device.duration_ns[row] > device.duration_ns[example]) example = row;
    evidence.add_device(row, keep(kLeastPart, traits.tensor_cores == analyze::TensorCores::kNo ? 0.6 : 1), keep_high);
  });
  if (evidence.empty()) return {};
  Finding finding{.id = "tensor-cores-unused",
                  .try_text = "pad the sizes (vocabulary, hidden, batch) to multiples of 8, better of 64",
                  .try_code = "vocab_size = (vocab_size + 63) // 64 * 64",
                  .confidence = Confidence::kLow,
                  .confirm_by = "time one of these matmuls with padded sizes"};
  evidence.fill(finding);
  const Row detail = model.op_detail(device.op[example]);
  finding.title = "16-bit matmuls with sizes that do not suit tensor cores take " +
                  short_percent(finding.share_of_step) +
                  " of a step (largest: " + std::string(model.text(model.op_details.input_dims[detail])) + ")";
  return {finding};
}

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
constexpr double kProductLow = 0.7;
constexpr double kProductHigh = 0.36;

// Softmax between two batched matmuls: attention done by hand.
std::vector<Finding> find_unfused_attention(const Context& context) {
  if (!context.has_device_work) return cpu_unfused_attention(context);
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  Evidence evidence(context);
  std::unordered_set<Row> products;
  constexpr size_t kReach = 6;  // scale, mask, cast, dropout between softmax and matmul
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    std::vector<Row> kernels;
    for (Row row = model.lanes.device_begin[lane]; row < model.lanes.device_end[lane]; ++row) {
      if (device.kind[row] == DeviceKind::kKernel) kernels.push_back(row);
    }
    const auto op_name = [&](size_t at) -> std::string_view {
      const Row op = device.op[kernels[at]];
      return op == kNoRow ? std::string_view{} : model.text(model.host_slices.name[op]);
    };
    for (size_t at = 0; at < kernels.size(); ++at) {
      const std::string_view name = op_name(at);
      if (name != "aten::_softmax" && name != "aten::_softmax_backward_data") continue;
      const auto reach = [&](int step) {
        for (size_t i = 1; i <= kReach; ++i) {
          const ptrdiff_t place = static_cast<ptrdiff_t>(at) + step * static_cast<ptrdiff_t>(i);
          if (place < 0 || place >= static_cast<ptrdiff_t>(kernels.size())) return SIZE_MAX;
          if (is_batched_matmul(op_name(static_cast<size_t>(place)))) return static_cast<size_t>(place);
        }
        return SIZE_MAX;
      };
      const size_t before = reach(-1);
      const size_t after = reach(+1);
      if (before == SIZE_MAX || after == SIZE_MAX) continue;
      // The products read and write the matrix of scores, too; the backward has two on each side.
      for (const size_t product : {before, after}) products.insert(kernels[product]);
      if (name != "aten::_softmax") {
        if (before > 0 && is_batched_matmul(op_name(before - 1))) products.insert(kernels[before - 1]);
        if (after + 1 < kernels.size() && is_batched_matmul(op_name(after + 1))) products.insert(kernels[after + 1]);
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
        evidence.add_device(kernels[i], 0.15, 0);
        if (device.op[kernels[i]] != kNoRow) evidence.add_host(device.op[kernels[i]]);
      }
    }
  }
  if (evidence.empty()) return {};
  for (const Row product : products) evidence.add_beside(product, kProductLow, kProductHigh);
  Finding finding{.id = "attention-unfused",
                  .try_text = "use fused attention: it never writes the matrix of scores to memory",
                  .try_code = "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)",
                  .confidence = Confidence::kMedium,
                  .confirm_by = context.flag(RecordOption::kShapes) + " and memory, to see what the scores take",
                  .part_of = kFusion};
  evidence.fill(finding);
  finding.title = "attention is computed in separate steps: softmax, masks and casts between its matmuls take " +
                  short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

// The aten op that the user's code asked for: up from the one that launched, while ops are aten's.
Row outermost_aten(const Model& model, Row op) {
  const HostSlices& host = model.host_slices;
  Row found = op;
  for (Row row = op; row != kNoRow && host.kind[row] == HostKind::kOp; row = host.parent[row]) {
    if (!model.text(host.name[row]).starts_with("aten::")) break;
    found = row;
  }
  return found;
}

std::vector<Finding> find_unfused_chains(const Context& context) {
  if (!context.has_device_work) return cpu_unfused_chains(context);
  const Model& model = context.model;
  const auto& table = context.trace.get<analyze::fusion_table>();
  Evidence evidence(context);
  int64_t saved_bytes = 0;
  int64_t launches = 0;
  for (const analyze::FusionChain& chain : table.chains) {
    if (chain.device_ns == 0) continue;
    const double keep = 1 - static_cast<double>(chain.saved_ns) / static_cast<double>(chain.device_ns);
    for (size_t i = 0; i < chain.slices.size(); ++i) {
      evidence.add_device(chain.slices[i], keep, keep);
      const bool first_of_its_time = i % chain.members.size() == 0;
      if (!first_of_its_time) evidence.add_host(outermost_aten(model, model.device_slices.op[chain.slices[i]]));
    }
    saved_bytes += chain.saved_bytes;
    launches += chain.saved_launches;
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "pointwise-unfused",
                  .try_text = "let a compiler fuse pointwise, normalization and reduction kernels",
                  .try_code = "model = torch.compile(model)",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "run with torch.compile and compare step times"};
  evidence.fill(finding);
  // Mostly launches to save: the same cause, and the same remedy, as a host that cannot feed the device.
  finding.cause = finding.gain.low_ns * 5 < finding.gain.high_ns ? "overhead" : kFusion;
  finding.title = "chains of small kernels on the same data take " + short_percent(finding.share_of_step) +
                  " of a step; fused, they would save " + counted(launches, "launch", "launches") + " and " +
                  short_bytes(saved_bytes) + " of traffic in this trace";
  return {finding};
}

// Of the graph's nodes that these convolutions made: autocast's casts inside of them have their own.
std::unordered_set<int64_t> sequence_numbers_of(const Model& model, const std::unordered_set<Row>& convolutions) {
  const HostSlices& host = model.host_slices;
  std::unordered_set<int64_t> numbers;
  for (const Row conv : convolutions) {
    const Row end = model.lanes.host_end[static_cast<size_t>(host.lane[conv])];
    for (Row row = conv; row < end && host.start_ns[row] < host.end_ns(conv); ++row) {
      const Row detail = model.op_detail(row);
      if (detail == kNoRow || model.op_details.sequence_number[detail] < 0) continue;
      if (model.text(host.name[row]) == "aten::convolution") numbers.insert(model.op_details.sequence_number[detail]);
    }
  }
  return numbers;
}

// By the trace's own link, else by the sequence number.
bool is_backward_of(const Model& model, Row op, const std::unordered_set<Row>& convolutions,
                    const std::unordered_set<int64_t>& sequence_numbers) {
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || !name_has(model.text(model.host_slices.name[op]), "ConvolutionBackward")) return false;
  for (Row row = model.op_details.forward[detail]; row != kNoRow; row = model.host_slices.parent[row]) {
    if (convolutions.contains(row)) return true;
  }
  return sequence_numbers.contains(model.op_details.sequence_number[detail]);
}

// A convolution with a bias right before a batch norm, which takes any constant away again.
std::vector<Finding> find_conv_bias(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::unordered_set<Row> convolutions;
  Row last = kNoRow;  // outermost op before this one on the same lane
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp) continue;
    const bool outermost = host.parent[row] == kNoRow || host.kind[host.parent[row]] != HostKind::kOp;
    if (!outermost) continue;
    const std::string_view name = model.text(host.name[row]);
    const bool after_conv =
        last != kNoRow && host.lane[last] == host.lane[row] && model.text(host.name[last]).starts_with("aten::conv");
    if (name == "aten::batch_norm" && after_conv && model.op_detail(last) != kNoRow) {
      const std::vector<analyze::Dims> dims =
          analyze::parse_input_dims(model.text(model.op_details.input_dims[model.op_detail(last)]));
      if (dims.size() > 2 && dims[2].size() == 1) convolutions.insert(last);
    }
    // Counting batches that were seen happens between the two.
    if (name != "aten::add_") last = row;
  }
  if (convolutions.empty()) return {};
  const std::unordered_set<int64_t> backwards = sequence_numbers_of(model, convolutions);
  Evidence evidence(context);
  for_kernels(context, [&](Row row, const analyze::KernelTraits& traits) {
    const bool adds = traits.kernel_class == analyze::KernelClass::kPointwise;
    const bool sums = traits.kernel_class == analyze::KernelClass::kReduction;  // the bias's gradient
    for (Row op = model.device_slices.op[row]; op != kNoRow; op = host.parent[op]) {
      const bool forward = adds && convolutions.contains(op);
      if (!forward && !(sums && is_backward_of(model, op, convolutions, backwards))) continue;
      evidence.add_device(row, 0, 0);
      evidence.add_host(model.device_slices.op[row]);
      break;
    }
  });
  if (evidence.empty()) return {};
  Finding finding{.id = "conv-bias-before-batch-norm",
                  .try_text = "drop the bias: batch norm subtracts the mean, and the bias with it",
                  .try_code = "nn.Conv2d(..., bias=False)",
                  .confidence = Confidence::kHigh};
  evidence.fill(finding);
  finding.title = counted(static_cast<int64_t>(convolutions.size()), "convolution adds", "convolutions add") +
                  " a bias that the batch norm right after takes away, in this trace";
  return {finding};
}

// Device work of these ops; without a device, the ops themselves with what was called to make the copy.
void add_work_of(const Context& context, const std::vector<Row>& ops, double keep_low, Evidence& evidence) {
  if (!context.has_device_work) {
    for (const Row op : ops) {
      const Row asked = analyze::asked_copy(context.model, op);
      evidence.add_call(asked, keep_low, 0);
      if (keep_low < 1) evidence.add_way_to(asked);
    }
    return;
  }
  const std::unordered_set<Row> wanted(ops.begin(), ops.end());
  const DeviceSlices& device = context.model.device_slices;
  for (Row row = 0; row < device.size(); ++row) {
    if (device.op[row] == kNoRow || !wanted.contains(device.op[row])) continue;
    evidence.add_device(row, keep_low, 0);
    evidence.add_host(analyze::asked_copy(context.model, device.op[row]));
  }
}

// Kernels of the ops between a cast to a wider type and the cast back, on the same thread: with half of the bytes they
// would take less, too.
void add_work_between(const Context& context, const std::vector<Row>& casts, Evidence& evidence) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  const std::unordered_set<Row> wanted(casts.begin(), casts.end());
  std::vector<Row> by_op;  // kernels, in the order of their ops: by thread, then time
  for (Row row = 0; row < device.size(); ++row) {
    if (device.kind[row] == DeviceKind::kKernel && device.op[row] != kNoRow) by_op.push_back(row);
  }
  std::stable_sort(by_op.begin(), by_op.end(), [&](Row a, Row b) { return device.op[a] < device.op[b]; });
  analyze::TraitsOfNames traits(model);
  std::vector<Row> between;
  bool is_wide = false;
  int64_t elements = 0;
  LaneId lane{UINT32_MAX};
  for (const Row row : by_op) {
    const Row op = device.op[row];
    if (model.host_slices.lane[op] != lane) is_wide = false;
    lane = model.host_slices.lane[op];
    const std::vector<analyze::OpTensor> inputs = analyze::input_tensors(model, op);
    if (inputs.empty()) continue;
    if (wanted.contains(op) && inputs.size() > 1) {
      is_wide = inputs[0].element_bytes > inputs[1].element_bytes;
      elements = inputs[0].elements;
      if (!is_wide) {
        for (const Row each : between) evidence.add_beside(each, 1, kNarrowKeep);
      }
      between.clear();
    } else if (is_wide && analyze::is_fusible_class(traits.of(device.name[row]).kernel_class) &&
               inputs[0].elements == elements && inputs[0].element_bytes == 4) {
      between.push_back(row);
    }
  }
}

std::vector<Finding> find_casts(const Context& context) {
  const auto& table = context.trace.get<analyze::copy_table>();
  Evidence evidence(context);
  add_work_of(context, table.ping_pong_ops, 0, evidence);
  if (context.has_device_work) add_work_between(context, table.ping_pong_ops, evidence);
  if (evidence.empty()) return {};
  Finding finding{.id = "dtype-ping-pong",
                  .try_text = "keep the tensor in one type between these ops, or leave the choice to autocast",
                  .try_code = context.has_device_work ? "with torch.autocast('cuda', torch.bfloat16): ..."
                                                      : "with torch.autocast('cpu', torch.bfloat16): ...",
                  .confidence = Confidence::kMedium,
                  .confirm_by = context.flag(RecordOption::kStacks) + ", to see the lines that cast",
                  .part_of = kFusion};
  evidence.fill(finding);
  finding.title = "tensors are cast to another type and back: " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

std::vector<Finding> find_layout_copies(const Context& context) {
  const auto& table = context.trace.get<analyze::copy_table>();
  Evidence evidence(context);
  for (const analyze::CopyRow& row : table.rows) {
    // Copies that the program asks for itself it can do without more often than those inside of other ops.
    if (row.kind == analyze::CopyKind::kLayout) add_work_of(context, row.ops, row.asked_by.empty() ? 0.3 : 1, evidence);
  }
  // cuDNN's own, around each convolution on tensor cores whose images are not channels_last.
  for_kernels(context, [&](Row row, const analyze::KernelTraits&) {
    const std::string_view name = context.model.text(context.model.device_slices.name[row]);
    if (name_has(name, "nchwToNhwc") || name_has(name, "nhwcToNchw")) evidence.add_device(row, 0.3, 0);
  });
  if (evidence.empty()) return {};
  Finding finding{.id = "layout-copies",
                  .try_text = "avoid .contiguous() and .reshape() of transposed tensors; keep images in channels_last",
                  .try_code = "model = model.to(memory_format=torch.channels_last)",
                  .confidence = Confidence::kLow,
                  .confirm_by = context.flag(RecordOption::kStacks) + ", to see who asks for another layout",
                  .part_of = kFusion};
  evidence.fill(finding);
  finding.title = "copies that only change the layout take " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> kernels_rules() {
  return {
      {"fp32-matmul", "kernels", 0.02, true,
       "Matrix multiplications ran in fp32 on the ordinary cores. Tensor cores do the same work 5 to 15 times as fast, "
       "with\n"
       "inputs rounded to TF32 (10 bits of mantissa, fp32's range) or to bf16.\n"
       "\n"
       "What to do: torch.set_float32_matmul_precision(\"high\") for TF32, or torch.autocast with bf16. Training of "
       "most networks\n"
       "does not notice TF32.\n"
       "\n"
       "When not: code that needs fp32's precision: solvers, some losses, long recurrences.",
       find_fp32_matmul},
      {"tensor-cores-unused", "kernels", 0.03, true,
       "Tensor cores work on tiles. When a dimension of a 16-bit matmul is no multiple of 8, the library pads, takes "
       "slower\n"
       "kernels, or does without tensor cores.\n"
       "\n"
       "What to do: pad a vocabulary or a hidden size once, to a multiple of 8 (64 is better still).\n"
       "\n"
       "When not: there is little to gain where the matmul is small or bound by memory.",
       find_tensor_cores},
      {"attention-unfused", "kernels", 0.03, true,
       "Attention written as matmul, softmax, matmul writes and reads the matrix of scores (sequence x sequence) "
       "several\n"
       "times. A fused kernel keeps it on the chip: less time, and memory that grows with the sequence, not with its "
       "square.\n"
       "\n"
       "What to do: torch.nn.functional.scaled_dot_product_attention, or FlexAttention for masks and biases of your "
       "own.\n"
       "\n"
       "When not: the scores themselves are needed (to show them, or for a bias that the fused kernels do not take).",
       find_unfused_attention},
      {"pointwise-unfused", "kernels", 0.05, true,
       "Each small kernel reads its tensor from memory and writes it back, and is launched by itself. One kernel that "
       "does\n"
       "the whole chain reads and writes once.\n"
       "\n"
       "What to do: torch.compile, which fuses such chains; or an operator that does several of them at once.\n"
       "\n"
       "When not: compiling costs time at the start and again for new shapes (dynamic=True helps), so short runs may "
       "lose.",
       find_unfused_chains},
      {"conv-bias-before-batch-norm", "kernels", 0.002, true,
       "Batch norm subtracts the mean of each channel. A bias of the convolution before it is a constant per channel, "
       "so it\n"
       "is added and subtracted again, and its gradient is always zero.\n"
       "\n"
       "What to do: bias=False in convolutions that a batch norm follows.\n"
       "\n"
       "When not: the batch norm may be removed or folded later, and the weights are loaded elsewhere by name.",
       find_conv_bias},
      {"dtype-ping-pong", "kernels", 0.01, true,
       "A tensor is cast to another type and soon after back again. Each cast reads and writes the whole tensor. Often "
       "a\n"
       ".float() in the middle of bf16 code, or a module kept in fp32.\n"
       "\n"
       "What to do: keep one type along the way, and let autocast decide where another is needed.\n"
       "\n"
       "When not: norms, softmax and losses that really need fp32.",
       find_casts},
      {"layout-copies", "kernels", 0.05, true,
       "Copies that change only the order of elements in memory: .contiguous(), .reshape() of a transposed tensor, "
       "clone().\n"
       "In every step and layer they usually come from a layout that does not suit the operators. cuDNN's own "
       "(nchwToNhwc)\n"
       "around convolutions count, too.\n"
       "\n"
       "What to do: choose the layout once (channels_last for convolutions), and keep views instead of copies.\n"
       "\n"
       "When not: some are needed once, and a copy can pay for itself when many operators read the new order.",
       find_layout_copies},
  };
}

}  // namespace firelane::advise

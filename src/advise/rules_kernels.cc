// What kernels could do better: precision, tensor cores, fused chains, casts.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/kernel_evidence.h"
#include "advise/notes.h"
#include "advise/on_cpu.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/compute/copies.h"
#include "analyze/compute/fusion.h"
#include "analyze/device/device_peaks.h"
#include "analyze/device/kernel_traits.h"
#include "analyze/ops/flops.h"
#include "analyze/ops/op_tensors.h"
#include "base/run_sort.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

constexpr double kRealPart = 0.75;  // of a peak that real matmuls reach
constexpr double kLeastPart = 0.5;  // those of awkward sizes
constexpr double kShortestKernelNs = 2000;
constexpr double kNarrowKeepLow = 0.85;  // of a kernel's time in fp32 that it takes in 16 bits
constexpr double kNarrowKeepHigh = 0.6;
// The part of its time that a matmul's work would take at `part_of_peak` of the device's peak; 1 when it is as fast, or
// when its work is not known.
class FasterMatmul {
 public:
  explicit FasterMatmul(const Model& model) : model_(model), flops_(model), tensors_(model) {}

  double keep(Row op, int64_t took_ns, analyze::KernelClass kernel_class, const analyze::DevicePeaks& peaks,
              double tflops, double part_of_peak) {
    const int64_t op_flops = op == kNoRow ? 0 : flops_.of(op).op_flops;
    if (op_flops <= 0) return 1;
    const int64_t bytes =
        analyze::op_bytes(model_.text(model_.host_slices.name[op]), kernel_class, tensors_.of(op), op_flops);
    const double memory_ns = bytes == kNoNumber ? 0 : static_cast<double>(bytes) / peaks.bandwidth_gb_s;
    const double compute_ns = static_cast<double>(op_flops) / (part_of_peak * tflops * 1e3);
    const double then_ns = std::max({memory_ns, compute_ns, kShortestKernelNs});
    return std::min(1.0, then_ns / static_cast<double>(std::max<int64_t>(1, took_ns)));
  }

 private:
  const Model& model_;
  analyze::FlopsTable flops_;
  analyze::InputTensors tensors_;
};

// All kernels of an op that multiplies in fp32 without tensor cores: changes of layout and transforms, which those
// algorithms need, go with them.
struct PlainOp {
  std::vector<Row> kernels;
  int64_t took_ns = 0;
  analyze::KernelClass kernel_class = analyze::KernelClass::kOther;
};

// fp32 matmuls and convolutions that run without tensor cores although the device has them.
std::vector<Finding> find_fp32_matmul(const Context& context) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  FasterMatmul faster(model);
  Evidence evidence(context);
  std::map<Row, PlainOp> ops;
  for_kernels(context, [&](Row row, const analyze::KernelTraits& traits) {
    if (device.op[row] == kNoRow) return;
    const bool plain_fp32 = analyze::is_matrix_class(traits.kernel_class) &&
                            traits.precision == analyze::Precision::kFp32 &&
                            traits.tensor_cores == analyze::TensorCores::kNo;
    if (!plain_fp32 || contains(model.text(device.name[row]), "gemv")) return;
    ops[device.op[row]].kernel_class = traits.kernel_class;
  });
  if (ops.empty()) return {};
  for_kernels(context, [&](Row row, const analyze::KernelTraits&) {
    const auto op = device.op[row] == kNoRow ? ops.end() : ops.find(device.op[row]);
    if (op == ops.end()) return;
    op->second.kernels.push_back(row);
    op->second.took_ns += device.duration_ns[row];
  });
  for (const auto& [row, op] : ops) {
    const analyze::DevicePeaks* peaks = analyze::peaks_of(model, device.device[op.kernels.front()]);
    if (peaks == nullptr) continue;
    const double fast_tflops = peaks->tf32_tflops > 0 ? peaks->tf32_tflops : peaks->half_tflops;
    if (fast_tflops <= peaks->fp32_tflops) continue;
    const auto keep = [&](double part_of_peak) {
      return faster.keep(row, op.took_ns, op.kernel_class, *peaks, fast_tflops, part_of_peak);
    };
    if (keep(kRealPart) >= 1) continue;
    for (const Row kernel : op.kernels) evidence.add_device(kernel, keep(kLeastPart), keep(kRealPart));
  }
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

// ---- float64 ----

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

constexpr double kWideKeepLow = 0.55;  // of what moves float64, as float32
constexpr double kWideKeepHigh = 0.45;
constexpr double kPlainPartLow = 0.65;  // of the peak without tensor cores that fp32 matmuls reach
constexpr double kPlainPartHigh = 0.8;
constexpr double kCpuCallNs = 10'000;  // of an operator on the CPU: the call, whatever the type

bool takes_double(const Model& model, Row op) {
  const Row detail = op == kNoRow ? kNoRow : model.op_detail(op);
  if (detail == kNoRow || model.op_details.input_types[detail] == kNoString) return false;
  if (!contains(model.text(model.op_details.input_types[detail]), "\"double\"")) return false;
  // A Python number is a "double" without dimensions, whatever the tensors beside it are.
  const std::vector<analyze::OpTensor> inputs = analyze::input_tensors(model, op);
  const auto is_large = [](const analyze::OpTensor& input) { return !input.dims.empty(); };
  return std::none_of(inputs.begin(), inputs.end(), is_large) ||
         std::any_of(inputs.begin(), inputs.end(), [&](const analyze::OpTensor& input) {
           return is_large(input) && input.precision == analyze::Precision::kFp64;
         });
}

// A cast between float32 and float64, which would not be there: the first two inputs of copy_.
bool casts_float(const Model& model, Row op) {
  if (op == kNoRow || model.text(model.host_slices.name[op]) != "aten::copy_") return false;
  const std::string_view types = model.text(model.op_details.input_types[model.op_detail(op)]);
  return types.starts_with("[\"double\", \"float\"") || types.starts_with("[\"float\", \"double\"");
}

void add_doubles_on_device(const Context& context, Evidence& evidence) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  FasterMatmul faster(model);
  for_kernels(context, [&](Row row, const analyze::KernelTraits& traits) {
    const Row op = device.op[row];
    // What updates a list of tensors has no types of them: its kernel's name says it.
    const bool in_list = op != kNoRow && contains(model.text(device.name[row]), "multi_tensor_apply_kernel") &&
                         contains(model.text(device.name[row]), "<double");
    if (!takes_double(model, op) && !in_list) return;
    if (casts_float(model, op)) {
      evidence.add_host(outermost_aten(model, op));
      return evidence.add_device(row, 0, 0);
    }
    if (!analyze::is_matrix_class(traits.kernel_class)) return evidence.add_device(row, kWideKeepLow, kWideKeepHigh);
    const analyze::DevicePeaks* peaks = analyze::peaks_of(model, device.device[row]);
    if (peaks == nullptr || peaks->fp32_tflops <= 0) return evidence.add_device(row, kWideKeepLow, kWideKeepHigh);
    const auto keep = [&](double part) {
      return faster.keep(op, device.duration_ns[row], traits.kernel_class, *peaks, peaks->fp32_tflops, part);
    };
    evidence.add_device(row, keep(kPlainPartLow), keep(kPlainPartHigh));
  });
}

// Outermost operators that take float64; what calls them takes as long as before.
void add_doubles_on_cpu(const Context& context, Evidence& evidence) {
  const HostSlices& host = context.model.host_slices;
  int64_t until = INT64_MIN;
  LaneId lane{};
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    if (host.lane[row] == lane && host.start_ns[row] < until) continue;
    if (!takes_double(context.model, row)) continue;
    lane = host.lane[row];
    until = host.end_ns(row);
    const double computes = std::max(0.0, 1 - kCpuCallNs / static_cast<double>(context.took_ns(row) + 1));
    evidence.add_call(row, 1 - computes * (1 - kWideKeepLow), 1 - computes * (1 - kWideKeepHigh));
  }
}

std::vector<Finding> find_fp64(const Context& context) {
  Evidence evidence(context);
  if (context.has_device_work) {
    add_doubles_on_device(context, evidence);
  } else {
    add_doubles_on_cpu(context, evidence);
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "fp64-compute",
                  .try_text = "compute in float32: convert data that comes from NumPy, whose numbers are float64",
                  .try_code = "torch.from_numpy(x).float()  # and model.float()",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare results: float64 has 53 bits of precision, float32 has 24"};
  evidence.fill(finding);
  finding.title = "operators on float64 (double) take " + short_percent(finding.share_of_step) +
                  " of a step: twice the traffic of float32, and slower arithmetic";
  return {finding};
}

// 16-bit matmuls that do not run on tensor cores, or whose sizes make them slow there.
std::vector<Finding> find_tensor_cores(const Context& context) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  FasterMatmul faster(model);
  analyze::InputTensors tensors(model);
  Evidence evidence(context);
  Row example = kNoRow;
  for_kernels(context, [&](Row row, const analyze::KernelTraits& traits) {
    if (traits.kernel_class != analyze::KernelClass::kMatmul || device.op[row] == kNoRow) return;
    const std::vector<analyze::OpTensor>& inputs = tensors.of(device.op[row]);
    if (inputs.size() < 2 || inputs.back().element_bytes > 2 || inputs.back().dims.size() < 2) return;
    if (contains(model.text(device.name[row]), "gemv")) return;  // one row or column: bound by memory
    if (traits.tensor_cores != analyze::TensorCores::kNo && analyze::are_aligned(inputs)) return;
    const analyze::DevicePeaks* peaks = analyze::peaks_of(model, device.device[row]);
    const auto keep = [&](double part_of_peak, double unknown) {
      if (peaks == nullptr || peaks->half_tflops <= 0) return unknown;
      return faster.keep(device.op[row], device.duration_ns[row], traits.kernel_class, *peaks, peaks->half_tflops,
                         part_of_peak);
    };
    const double keep_high = keep(kRealPart, 0.4);
    if (keep_high >= 1) return;
    if (example == kNoRow || device.duration_ns[row] > device.duration_ns[example]) example = row;
    evidence.add_device(row, keep(kLeastPart, traits.tensor_cores == analyze::TensorCores::kNo ? 0.6 : 1), keep_high);
  });
  if (evidence.empty()) return {};
  Finding finding{.id = "tensor-cores-unused",
                  .try_text = "pad the sizes (vocabulary, hidden, batch) to multiples of 8, preferably 64",
                  .try_code = "vocab_size = (vocab_size + 63) // 64 * 64",
                  .confidence = Confidence::kLow,
                  .confirm_by = "time one of these matmuls with padded sizes"};
  evidence.fill(finding);
  const Row detail = model.op_detail(device.op[example]);
  finding.title = "16-bit matmuls with sizes that do not fit tensor cores take " +
                  short_percent(finding.share_of_step) +
                  " of a step (largest: " + std::string(model.text(model.op_details.input_dims[detail])) + ")";
  return {finding};
}

// How many kernels an op and those that it calls launched, and how many of them are members of chains.
class LaunchedBelow {
 public:
  LaunchedBelow(const Model& model, const analyze::FusionTable& table) : host_(model.host_slices) {
    all_.resize(host_.size());
    chained_.resize(host_.size());
    for (const Row op : model.device_slices.op) count(op, all_);
    for (const analyze::FusionChain& chain : table.chains) {
      for (const Row slice : chain.slices) count(model.device_slices.op[slice], chained_);
    }
  }
  // Nothing but what would be joined to something else: the op is called no more.
  bool is_all_joined(Row op) const { return all_[op] == chained_[op]; }

 private:
  void count(Row op, std::vector<uint32_t>& counts) const {
    for (Row row = op; row != kNoRow && host_.kind[row] == HostKind::kOp; row = host_.parent[row]) ++counts[row];
  }

  const HostSlices& host_;
  std::vector<uint32_t> all_, chained_;  // by host slice
};

std::vector<Finding> find_unfused_chains(const Context& context) {
  if (!context.has_device_work) return cpu_unfused_chains(context);
  const Model& model = context.model;
  const auto& table = context.trace.get<analyze::fusion_table>();
  const LaunchedBelow launched(model, table);
  Evidence evidence(context);
  int64_t saved_bytes = 0;
  int64_t launches = 0;
  for (const analyze::FusionChain& chain : table.chains) {
    if (chain.device_ns == 0) continue;
    const double keep = 1 - static_cast<double>(chain.saved_ns) / static_cast<double>(chain.device_ns);
    for (size_t i = 0; i < chain.slices.size(); ++i) {
      evidence.add_device(chain.slices[i], keep, keep);
      const bool first_of_its_time = i % chain.members.size() == 0;
      if (first_of_its_time) continue;
      Row op = outermost_aten(model, model.device_slices.op[chain.slices[i]]);
      if (op == kNoRow) continue;
      // A recurrent layer adds its biases itself: that is no reason to leave the layer out.
      if (!launched.is_all_joined(op)) op = model.device_slices.op[chain.slices[i]];
      if (!launched.is_all_joined(op)) continue;
      // A node of the backward pass that does nothing else goes with its operator.
      const Row node = model.host_slices.parent[op];
      const bool alone = node != kNoRow && model.host_slices.kind[node] == HostKind::kOp &&
                         2 * model.host_slices.duration_ns[op] > model.host_slices.duration_ns[node];
      const Row outermost = outermost_op(model, op);
      const Row gone = alone && launched.is_all_joined(outermost) ? outermost : op;
      evidence.add_host(gone, 0.5);
      evidence.add_way_to(gone);
    }
    saved_bytes += chain.saved_bytes;
    launches += chain.saved_launches;
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "pointwise-unfused",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "run with torch.compile and compare step times"};
  advise_fusing(context.model, "let a compiler fuse pointwise, normalization and reduction kernels", finding);
  evidence.fill(finding);
  // Mostly launches to save: the same cause, and the same remedy, as a host that cannot feed the device.
  finding.cause = finding.cost_ns < finding.gain.middle_ns() ? "overhead" : kFusion;
  finding.title = "chains of small kernels on the same data take " + short_percent(finding.share_of_step) +
                  " of a step; fused, they would save " + counted(launches, "launch", "launches") + " and " +
                  short_bytes(saved_bytes) + " of traffic in this trace";
  return {finding};
}

// Kernels of the ops between a cast to a wider type and the cast back, on the same thread: with half of the bytes they
// would take less, too.
void add_work_between(const Context& context, const std::vector<Row>& casts, Evidence& evidence) {
  if (casts.empty()) return;
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  const std::unordered_set<Row> wanted(casts.begin(), casts.end());
  std::vector<Row> by_op;  // kernels, in the order of their ops: by thread, then time
  for (Row row = 0; row < device.size(); ++row) {
    if (device.kind[row] == DeviceKind::kKernel && device.op[row] != kNoRow) by_op.push_back(row);
  }
  run_sort(by_op.data(), by_op.size(), [&](Row a, Row b) { return device.op[a] < device.op[b]; });
  analyze::TraitsOfNames traits(model);
  analyze::InputTensors tensors(model);
  std::vector<Row> between;
  bool is_wide = false;
  int64_t elements = 0;
  LaneId lane{UINT32_MAX};
  for (const Row row : by_op) {
    const Row op = device.op[row];
    if (model.host_slices.lane[op] != lane) is_wide = false;
    lane = model.host_slices.lane[op];
    const std::vector<analyze::OpTensor>& inputs = tensors.of(op);
    if (inputs.empty()) continue;
    if (wanted.contains(op) && inputs.size() > 1) {
      is_wide = inputs[0].element_bytes > inputs[1].element_bytes;
      elements = inputs[0].elements;
      if (!is_wide) {
        for (const Row each : between) evidence.add_beside(each, kNarrowKeepLow, kNarrowKeepHigh);
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
                  .confirm_by = knows_lines(context)
                                    ? "change these lines and time some steps"
                                    : context.flag(RecordOption::kLines) + ", to see the lines that cast"};
  evidence.fill(finding);
  finding.title = "tensors are cast to another type and back: " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> kernels_rules() {
  return {
      {"fp64-compute", "kernels", 0.05, true,
       "Everything that takes a float64 tensor moves twice the bytes, and most devices compute it far slower: at\n"
       "half the rate on data center GPUs, at 1/32 or 1/64 on others. It often happens unintentionally: NumPy's\n"
       "default is float64, and one such tensor makes the operators after it float64, too.\n\n"
       "The gain is a replay in which matmuls run at float32's rate and everything else takes half as long.\n\n"
       "What to do: .float() where data becomes a tensor; torch.set_default_dtype only if a library needs it.\n\n"
       "When not: the problem needs the precision (simulation, linear solvers).",
       find_fp64},
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
       "Tensor cores work on tiles. When a dimension of a 16-bit matmul is not a multiple of 8, the library pads\n"
       "it, uses slower kernels, or does not use tensor cores at all.\n\n"
       "What to do: pad a vocabulary or a hidden size once, to a multiple of 8 (64 is better still).\n\n"
       "When not: there is little to gain if the matmul is small or bound by memory bandwidth.",
       find_tensor_cores},
      {"pointwise-unfused", "kernels", 0.10, true,
       "Each small kernel reads its tensor from memory and writes it back, and is launched separately. One kernel\n"
       "that does "
       "the whole chain reads and writes once.\n"
       "\n"
       "What to do: torch.compile, which fuses such chains; or an operator that does several of them at once.\n"
       "\n"
       "When not: compiling costs time at the start and again for new shapes (dynamic=True helps), so short runs may "
       "lose.",
       find_unfused_chains},
      {"dtype-ping-pong", "kernels", 0.01, true,
       "A tensor is cast to another type and soon after back again. Each cast reads and writes the whole tensor. Often "
       "a\n"
       ".float() in the middle of bf16 code, or a module kept in fp32.\n"
       "\n"
       "What to do: keep one dtype throughout, and let autocast decide where another is needed.\n"
       "\n"
       "When not: norms, softmax and losses that really need fp32.",
       find_casts},
  };
}

}  // namespace firelane::advise

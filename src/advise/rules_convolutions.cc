// Convolutions and layouts: a bias that batch norm cancels, copies that only change the order, images in NCHW.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "advise/evidence.h"
#include "advise/kernel_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/compute/copies.h"
#include "analyze/device/device_peaks.h"
#include "analyze/device/kernel_traits.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/ops/op_tensors.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

// Among the graph's nodes that these convolutions made: autocast's casts inside of them have their own.
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
  if (detail == kNoRow || !contains(model.text(model.host_slices.name[op]), "ConvolutionBackward")) return false;
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
                  .confidence = Confidence::kHigh,
                  .part_of = kFusion};
  evidence.fill(finding);
  finding.title = counted(static_cast<int64_t>(convolutions.size()), "convolution adds", "convolutions add") +
                  " a bias that the following batch norm cancels, in this trace";
  return {finding};
}

// ---- Layouts ----

// Share of a device's bandwidth that batch norm reaches in channels_last (H200, torch 2.11), and how often its passes
// read or write the images: statistics and result of the forward pass, two sums and the result of the backward pass.
constexpr double kNormReached = 0.33;
constexpr double kForwardPasses = 3;
constexpr double kBackwardPasses = 5;
// In fp32 with half the bytes under autocast, of kernels that are bound by memory or by tensor cores.
constexpr double kHalfLow = 0.65;
constexpr double kHalfHigh = 0.5;

bool is_layout_kernel(std::string_view name) { return contains(name, "nchwToNhwc") || contains(name, "nhwcToNchw"); }

// By name, each looked at once.
std::vector<bool> layout_kernels(const Model& model) {
  std::vector<bool> asked(model.strings.size());
  std::vector<bool> out(model.strings.size());
  for (const StringId name : model.device_slices.name) {
    const auto id = static_cast<uint32_t>(name);
    if (asked[id]) continue;
    asked[id] = true;
    out[id] = is_layout_kernel(model.text(name));
  }
  return out;
}

bool is_batch_norm_of_nchw(std::string_view kernel, const analyze::KernelTraits& traits) {
  return traits.kernel_class == analyze::KernelClass::kNormalization &&
         (contains(kernel, "batch_norm") || contains(kernel, "bn_fw") || contains(kernel, "bn_bw")) &&
         !contains(kernel, "channels_last") && !contains(kernel, "nhwc") && !contains(kernel, "NHWC");
}

// What a program whose images are in NCHW pays beside cuDNN's copies.
struct Images {
  bool in_nchw = false;
  bool in_fp32 = false;  // convolutions, on tensor cores or not
  bool any = false;      // the trace has convolutions
};

Images images_of(const Context& context, const std::vector<bool>& is_layout) {
  Images out;
  for_kernels(context, [&](Row row, const analyze::KernelTraits& traits) {
    const StringId name = context.model.device_slices.name[row];
    out.any = out.any || traits.kernel_class == analyze::KernelClass::kConvolution;
    out.in_nchw =
        out.in_nchw || (is_layout[static_cast<uint32_t>(name)] && contains(context.model.text(name), "nchwToNhwc"));
    out.in_fp32 = out.in_fp32 ||
                  (traits.kernel_class == analyze::KernelClass::kConvolution &&
                   (traits.precision == analyze::Precision::kFp32 || traits.precision == analyze::Precision::kTf32));
  });
  for (uint32_t name = 0; name < context.model.strings.size() && !out.any; ++name) {
    out.any = analyze::op_class(context.model.text(StringId{name})) == analyze::KernelClass::kConvolution;
  }
  return out;
}

// Batch norm over NCHW walks each channel's images with gaps between them; in channels_last it is bound by its traffic.
void add_batch_norms(const Context& context, const Images& images, Evidence& evidence) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  std::map<Row, std::vector<Row>> kernels_of;  // by op
  for_kernels(context, [&](Row row, const analyze::KernelTraits& traits) {
    if (device.op[row] == kNoRow || !is_batch_norm_of_nchw(model.text(device.name[row]), traits)) return;
    kernels_of[device.op[row]].push_back(row);
  });
  for (const auto& [op, kernels] : kernels_of) {
    const analyze::DevicePeaks* peaks = analyze::peaks_of(model, device.device[kernels.front()]);
    int64_t bytes = 0;
    for (const analyze::OpTensor& tensor : analyze::input_tensors(model, op)) bytes = std::max(bytes, tensor.bytes);
    if (peaks == nullptr || bytes == 0) continue;
    int64_t took_ns = 0;
    for (const Row row : kernels) took_ns += device.duration_ns[row];
    const double passes =
        contains(model.text(model.host_slices.name[op]), "backward") ? kBackwardPasses : kForwardPasses;
    const double then_ns = passes * static_cast<double>(bytes) / (kNormReached * peaks->bandwidth_gb_s);
    const double keep = std::min(1.0, then_ns / static_cast<double>(std::max<int64_t>(1, took_ns)));
    for (const Row row : kernels) {
      evidence.add_device(row, keep * (images.in_fp32 ? kHalfLow : 1), keep * (images.in_fp32 ? kHalfHigh : 1));
    }
  }
}

// All other kernels that read images in fp32.
void add_half_precision(const Context& context, Evidence& evidence) {
  const Model& model = context.model;
  const DeviceSlices& device = model.device_slices;
  for_kernels(context, [&](Row row, const analyze::KernelTraits& traits) {
    const std::string_view name = model.text(device.name[row]);
    const bool counts = traits.kernel_class == analyze::KernelClass::kPointwise ||
                        traits.kernel_class == analyze::KernelClass::kConvolution ||
                        traits.kernel_class == analyze::KernelClass::kMatmul;
    if (!counts || device.op[row] == kNoRow || is_layout_kernel(name)) return;
    const std::vector<analyze::OpTensor> inputs = analyze::input_tensors(model, device.op[row]);
    const bool of_images = std::any_of(inputs.begin(), inputs.end(), [](const analyze::OpTensor& tensor) {
      return tensor.dims.size() == 4 && tensor.element_bytes == 4;
    });
    if (of_images) evidence.add_beside(row, kHalfLow, kHalfHigh);
  });
}

std::vector<Finding> find_layout_copies(const Context& context) {
  const auto& table = context.trace.get<analyze::copy_table>();
  Evidence evidence(context);
  for (const analyze::CopyRow& row : table.rows) {
    // Copies that the program asks for itself it can do without more often than those inside of other ops.
    if (row.kind == analyze::CopyKind::kLayout) add_work_of(context, row.ops, row.asked_by.empty() ? 0.1 : 1, evidence);
  }
  // cuDNN's own, around each convolution on tensor cores whose images are not channels_last.
  const std::vector<bool> is_layout = layout_kernels(context.model);
  for_kernels(context, [&](Row row, const analyze::KernelTraits&) {
    if (is_layout[static_cast<uint32_t>(context.model.device_slices.name[row])]) evidence.add_device(row, 0.1, 0);
  });
  const Images images = images_of(context, is_layout);
  const bool half = images.in_nchw && images.in_fp32;
  if (images.in_nchw) add_batch_norms(context, images, evidence);
  if (half) add_half_precision(context, evidence);
  if (evidence.empty()) return {};
  Finding finding{
      .id = "layout-copies",
      .try_text = std::string("avoid .contiguous() and .reshape() of transposed tensors") +
                  (images.any ? "; keep images in channels_last" : ": keep the order that the next op reads"),
      .try_code = images.any ? "model = model.to(memory_format=torch.channels_last)" : "",
      .confidence = Confidence::kLow,
      .confirm_by = knows_lines(context) ? "change these lines and time some steps"
                                         : context.flag(RecordOption::kLines) + ", to see who asks for another layout",
      .cause = "layout-copies",
      .part_of = kFusion};
  if (half) {
    finding.try_text = "keep images in channels_last, and compute in bf16 under autocast: fp32 moves twice the bytes";
    finding.try_code =
        "model = model.to(memory_format=torch.channels_last); with torch.autocast('cuda', torch.bfloat16): ...";
  }
  if (images.in_nchw) finding.confirm_by = "run some steps with images and model in channels_last";
  evidence.fill(finding);
  finding.title = (images.in_nchw ? std::string("images in NCHW") + (half ? " and fp32" : "") +
                                        ": changes of layout and batch norms over it take "
                                  : std::string("copies that only change the layout take ")) +
                  short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> convolutions_rules() {
  return {
      {"conv-bias-before-batch-norm", "kernels", 0.002, true,
       "Batch norm subtracts the mean of each channel. A bias of the convolution before it is a constant per channel, "
       "so it\n"
       "is added and subtracted again, and its gradient is always zero.\n"
       "\n"
       "What to do: bias=False in convolutions that a batch norm follows.\n"
       "\n"
       "When not: the batch norm may be removed or folded later, and the weights are loaded elsewhere by name.",
       find_conv_bias},
      {"layout-copies", "kernels", 0.05, true,
       "Copies that change only the order of elements in memory: .contiguous(), .reshape() of a transposed tensor,\n"
       "clone(). When they occur in every step and layer, the layout usually does not suit the operators. cuDNN's\n"
       "own conversions (nchwToNhwc) around convolutions count, too, and so do batch norms over NCHW, which take\n"
       "several times as long as in channels_last. Where such images are also in fp32, the gain is that of\n"
       "channels_last with bf16 autocast.\n\n"
       "What to do: choose the layout once (channels_last for convolutions), and use views instead of copies.\n\n"
       "When not: some are needed once, and a copy can pay off when many operators read the new layout.",
       find_layout_copies},
  };
}

}  // namespace firelane::advise

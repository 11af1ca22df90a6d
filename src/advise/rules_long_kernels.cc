// Convolutions with kernels so long that Fourier transforms compute the same with far less work.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/op_facts.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/device/device_peaks.h"

namespace firelane::advise {

namespace {

constexpr double kLongKernel = 64;       // weights of one channel, at least
constexpr double kTransformsGain = 2.5;  // the transforms take so many times less, at least

// A convolution, or its gradients, by the sizes that decide what it costs.
struct LongConvolution {
  Row op = kNoRow;
  double taps = 0;                              // weights of one channel
  double places = 0;                            // of one transform: signal and kernel beside each other
  double inputs = 0, kernels = 0, outputs = 0;  // transforms
  double products = 0;                          // sums of products for each place: of batch, both channels
  double in_group = 1;                          // channels that a result is made of
  double parts = 1;                             // the result, or the gradients that are asked for
  bool is_backward = false;
  bool is_flat = false;  // of two dimensions and more
};

bool all_ones(const std::string& numbers) {
  const std::optional<analyze::Dims> values = analyze::parse_int_list(numbers);
  return values && std::all_of(values->begin(), values->end(), [](int64_t value) { return value == 1; });
}

std::optional<LongConvolution> long_convolution(const Model& model, Row op) {
  const std::string_view name = name_of_op(model, op);
  const bool is_backward = name == "aten::convolution_backward";
  if (!is_backward && name != "aten::convolution") return {};
  const std::vector<analyze::Dims> shapes = shapes_of_op(model, op);
  const std::vector<std::string> numbers = numbers_of_op(model, op);
  const size_t input_at = is_backward ? 1 : 0;
  const size_t settings = is_backward ? 4 : 3;  // stride, padding, dilation, transposed, output padding, groups
  if (shapes.size() <= input_at + 1 || numbers.size() <= settings + 5) return {};
  const analyze::Dims& input = shapes[input_at];
  const analyze::Dims& weight = shapes[input_at + 1];
  if (weight.size() < 3 || input.size() != weight.size()) return {};
  // Where places are left out, Fourier transforms compute them all the same.
  if (!all_ones(numbers[settings]) || !all_ones(numbers[settings + 2]) || numbers[settings + 3] != "False") return {};
  LongConvolution found{.op = op, .taps = 1, .places = 1, .is_backward = is_backward};
  const auto is_no_size = [](int64_t size) { return size < 1; };  // of a broken trace
  if (std::any_of(input.begin(), input.end(), is_no_size) || std::any_of(weight.begin(), weight.end(), is_no_size))
    return {};
  for (size_t i = 2; i < weight.size(); ++i) {
    found.taps *= static_cast<double>(weight[i]);
    found.places *= static_cast<double>(input[i]) + static_cast<double>(weight[i]);
  }
  if (found.taps < kLongKernel) return {};
  found.is_flat = std::count_if(weight.begin() + 2, weight.end(), [](int64_t size) { return size > 1; }) > 1;
  const auto batch = static_cast<double>(input[0]);
  const auto in = static_cast<double>(input[1]);
  const auto out = static_cast<double>(weight[0]);
  const auto in_group = static_cast<double>(weight[1]);
  found.in_group = in_group;
  found.inputs = batch * in;
  found.kernels = out * in_group;
  found.outputs = batch * out;
  found.products = batch * out * in_group;
  if (is_backward && numbers.size() > settings + 6) {
    const std::optional<analyze::Dims> asked = analyze::parse_int_list(numbers[settings + 6]);
    if (asked && asked->size() == 3) found.parts = static_cast<double>((*asked)[0] + (*asked)[1]);
  }
  return found;
}

// What transforms of a convolution take, ns.
double by_fourier_ns(const Context& context, const LongConvolution& one) {
  const double transforms = one.inputs + one.kernels + one.outputs;
  const double flops =
      one.parts * (2.5 * one.places * std::log2(one.places) * transforms + 4 * one.products * one.places);
  if (!context.has_device_work) {
    // As transforms reach on one core; making a plan takes a moment for each of three.
    constexpr double kFlopsPerNs = 8;
    constexpr double kPlansNs = 450'000;
    const int64_t threads = std::max<int64_t>(1, context.model.info.environment.torch_threads);
    return kPlansNs + flops / (kFlopsPerNs * static_cast<double>(std::min<int64_t>(threads, 8)));
  }
  const analyze::DevicePeaks* peaks = analyze::peaks_of(context.model, 0);
  const double bytes_per_ns = peaks == nullptr ? 500 : peaks->bandwidth_gb_s / 2;  // half of the peak
  const double flops_per_ns = 1000 * (peaks == nullptr ? 10 : peaks->fp32_tflops / 5);
  constexpr double kPasses = 10;  // padding, transforms in several rounds, the product, a slice of the result
  return one.parts * kPasses * 4 * one.places * transforms / bytes_per_ns + flops / flops_per_ns + 20'000;
}

// What it would take by itself, if nothing else were wrong with it.
double at_best_ns(const Context& context, const LongConvolution& one) {
  const double flops = 2 * one.parts * one.products * one.places * one.taps;
  if (!context.has_device_work) {
    constexpr double kFlopsPerNs = 30;
    const int64_t threads = std::max<int64_t>(1, context.model.info.environment.torch_threads);
    return flops / (kFlopsPerNs * static_cast<double>(std::min<int64_t>(threads, 8)));
  }
  // In a depthwise convolution each weight is read for one product.
  const double of_peak = one.in_group > 1 ? 0.3 : 0.1;
  const analyze::DevicePeaks* peaks = analyze::peaks_of(context.model, 0);
  return flops / (1000 * of_peak * (peaks == nullptr ? 20 : peaks->fp32_tflops));
}

int64_t taken_ns(const Context& context, const LongConvolution& one) {
  if (!context.has_device_work) return context.took_ns(one.op);
  int64_t ns = 0;
  for (const Row work : context.trace.get<launched_work>().during(one.op))
    ns += context.model.device_slices.duration_ns[work];
  return ns;
}

std::vector<Finding> find_slow_convolution(const Context& context) {
  if (context.study == nullptr) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  Evidence evidence(context);
  std::vector<Row> ops;
  std::optional<LongConvolution> longest;
  int64_t longest_ns = -1;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    const std::optional<LongConvolution> one = long_convolution(model, row);
    if (!one || one->parts == 0) continue;
    const int64_t ns = taken_ns(context, *one);
    const double instead_ns = by_fourier_ns(context, *one);
    if (kTransformsGain * instead_ns > std::min(static_cast<double>(ns), at_best_ns(context, *one))) continue;
    const double keep_high = instead_ns / static_cast<double>(ns);
    const double keep_low = std::min(1.0, 2 * keep_high);
    if (context.has_device_work) {
      for (const Row work : context.trace.get<launched_work>().during(row))
        evidence.add_device(work, keep_low, keep_high);
    } else {
      evidence.add_call(row, keep_low, keep_high);
    }
    ops.push_back(row);
    if (ns > longest_ns && (!one->is_backward || !longest || longest->is_backward)) {
      longest = one;
      longest_ns = ns;
    }
  }
  if (evidence.empty() || !longest) return {};
  Finding finding{.id = "slow-convolution",
                  .try_text =
                      "multiply Fourier transforms instead, padded to the sum of both lengths: the same result "
                      "but for rounding",
                  .try_code =
                      "n = x.shape[-1] + k.shape[-1] - 1; y = torch.fft.irfft(torch.fft.rfft(x, n) * "
                      "torch.fft.rfft(k.flip(-1), n), n)  # conv1d's result with padding=k.shape[-1] - 1; cut off what "
                      "less padding leaves out",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare results and step times",
                  .cause = "slow-convolution"};
  if (longest->is_flat) {
    finding.try_text =
        "one convolution for each dimension, if the kernel is separable as a Gaussian blur is; Fourier transforms of "
        "both for any other: the same result but for rounding";
    finding.try_code =
        "y = conv2d(conv2d(x, k[None]), k[:, None])  # or torch.fft.irfft2(torch.fft.rfft2(x, n) * "
        "torch.fft.rfft2(k.flip(-2, -1), n), n), cut to the size";
  }
  evidence.fill(finding);
  finding.events = static_cast<int64_t>(ops.size());
  finding.title = "convolutions with kernels of " + std::to_string(std::llround(longest->taps)) +
                  " weights (inputs of " + shapes_text_of_op(model, longest->op) + ") take " +
                  short_percent(finding.share_of_step) + " of a step: Fourier transforms would be about " +
                  std::to_string(std::llround(static_cast<double>(longest_ns) / by_fourier_ns(context, *longest))) +
                  " times as fast";
  add_longest(finding, model, ops);
  return {finding};
}

}  // namespace

std::vector<Rule> long_kernels_rules() {
  return {
      {"slow-convolution", "kernels", 0.05, true,
       "A convolution computes as many products per position as its kernel has weights. With thousands of them (an\n"
       "echo, smoothing over a long window, a large blur), multiplying the Fourier transforms of signal and kernel\n"
       "and transforming back gives the same result with a few dozen operations per position.\n\n"
       "This finding covers convolutions and their gradients with 64 weights per channel and more, without stride\n"
       "and dilation, that take at least two and a half times as long as transforms would, and still would at a\n"
       "third of the device's peak (otherwise the algorithm is slow, not the length). The time of the transforms is\n"
       "estimated from their number and length, at half of the device's memory bandwidth, or at the typical speed\n"
       "of a CPU core. Needs shapes and the numeric arguments of operators. The gain is a replay with that time.\n\n"
       "What to do: torch.fft.rfft of both with n = length + kernel - 1 (or the next product of 2, 3 and 5),\n"
       "multiply, irfft, and cut to the length. torch convolutions are correlations: flip the kernel, or take the\n"
       "conjugate of its transform. A Gaussian or another separable kernel: one convolution for each dimension.\n\n"
       "When not: 16-bit data, which transforms do not support in all sizes; kernels that are long because of\n"
       "dilation.",
       find_slow_convolution},
  };
}

}  // namespace firelane::advise

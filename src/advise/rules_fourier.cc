// Fourier transforms of lengths for which there is no fast algorithm.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/ops/op_inputs.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

// Libraries have plans for prime factors up to here (cuFFT's largest is 127). Of a length with a larger one the
// transform is done as a convolution (Bluestein's algorithm): two others of at least twice the length.
constexpr int64_t kLargestPlanned = 127;
// What is left with a length that has a plan: a quarter by that count; on a device, where it fits into the caches,
// a tenth.
constexpr double kPlannedLow = 0.3;
constexpr double kPlannedHigh = 0.1;

int64_t largest_prime_of(int64_t length) {
  int64_t largest = 1;
  for (int64_t factor = 2; factor * factor <= length; ++factor) {
    for (; length % factor == 0; length /= factor) largest = factor;
  }
  return std::max(largest, length);
}

// The next length with no prime factor above 5.
int64_t next_planned(int64_t length) {
  while (true) {
    if (largest_prime_of(length) <= 5) return length;
    ++length;
  }
}

// The longest dimension that one of PyTorch's transforms works on; 0: none, or not recorded.
int64_t length_of(const Model& model, Row op) {
  const std::string_view name = model.text(model.host_slices.name[op]);
  if (name != "aten::_fft_r2c" && name != "aten::_fft_c2r" && name != "aten::_fft_c2c") return 0;
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || model.op_details.concrete_inputs[detail] == kNoString) return 0;
  const std::vector<std::string> numbers =
      analyze::parse_input_strings(model.text(model.op_details.concrete_inputs[detail]));
  const std::vector<analyze::Dims> shapes = analyze::parse_input_dims(input_dims_text(model, op));
  if (shapes.empty() || numbers.size() < 4) return 0;
  if (name == "aten::_fft_c2r") {  // of its result, which is told apart
    const std::optional<analyze::Dims> last = analyze::parse_int_list(numbers[3]);
    return last && last->size() == 1 ? last->front() : 0;
  }
  const std::optional<analyze::Dims> over = analyze::parse_int_list(numbers[1]);
  int64_t length = 0;
  const auto rank = static_cast<int64_t>(shapes[0].size());
  for (const int64_t dim : over.value_or(analyze::Dims{})) {
    const int64_t place = dim < 0 ? dim + rank : dim;
    if (place >= 0 && place < rank) length = std::max(length, shapes[0][static_cast<size_t>(place)]);
  }
  return length;
}

std::vector<Finding> find_fft_length(const Context& context) {
  if (context.study == nullptr) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::map<StringId, bool> transforms;  // by name
  std::map<int64_t, int64_t> calls;     // by length
  std::vector<Row> ops;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    const auto [found, is_new] = transforms.try_emplace(host.name[row]);
    if (is_new) found->second = contains(model.text(host.name[row]), "_fft_");
    const int64_t length = found->second ? length_of(model, row) : 0;
    if (length <= kLargestPlanned || largest_prime_of(length) <= kLargestPlanned) continue;
    ops.push_back(row);
    ++calls[length];
  }
  if (ops.empty()) return {};
  Evidence evidence(context);
  if (context.has_device_work) {
    for (const Row work : launched_during(model, ops)) evidence.add_device(work, kPlannedLow, kPlannedHigh);
  } else {
    for (const Row op : ops) evidence.add_call(op, kPlannedLow, kPlannedHigh);
  }
  if (evidence.empty()) return {};
  const auto most =
      std::max_element(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const int64_t length = most->first;
  const int64_t prime = largest_prime_of(length);
  const std::string next = std::to_string(next_planned(length));
  Finding finding{
      .id = "fft-length",
      .try_text =
          "pad with zeros to " + next +
          ": convolutions and correlations by FFT stay the same, the frequencies of a spectrum get closer together",
      .try_code = "torch.fft.rfft(x, n=" + next + ")  # and irfft(..., n=" + next + ")",
      .confidence = Confidence::kMedium,
      .confirm_by = "compare results and step times with the padded length"};
  evidence.fill(finding);
  finding.events = static_cast<int64_t>(ops.size());
  finding.title = "Fourier transforms of " + std::to_string(length) + " places (" +
                  (prime == length ? "a prime number" : "with the prime factor " + std::to_string(prime)) + ") take " +
                  short_percent(finding.share_of_step) + " of a step, " +
                  counted(std::max<int64_t>(1, context.study->per_step(finding.events)), "call", "calls") +
                  ": there is no fast algorithm for that length";
  add_longest(finding, model, ops);
  return {finding};
}

}  // namespace

std::vector<Rule> fourier_rules() {
  return {
      {"fft-length", "kernels", 0.05, true,
       "A Fourier transform is fast for lengths that are products of small primes. A length with a large prime\n"
       "factor (8191, where 2 L - 1 is enough for a convolution of two sequences of L = 4096) is computed through a\n"
       "convolution: two more transforms of at least twice the length, and products between them.\n\n"
       "This finding covers calls of aten::_fft_r2c, _fft_c2r and _fft_c2c along a dimension with a prime factor\n"
       "above 127, in the forward and backward pass. Needs shapes and the numeric arguments of operators. The gain\n"
       "is a replay in which these calls keep a tenth to three tenths of their time.\n\n"
       "What to do: pad to the next power of two or product of 2, 3 and 5 (scipy.fft.next_fast_len). A convolution\n"
       "by FFT needs a length of at least L + K - 1, and a longer one does not change the result.\n\n"
       "When not: a spectrum is needed at exactly these frequencies.",
       find_fft_length},
  };
}

}  // namespace firelane::advise

// Padding: positions of a batch that contain no data, as far as shapes show.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "advise/host_evidence.h"
#include "advise/padding.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/host/dispatch.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"

namespace firelane::advise {

namespace {

constexpr double kWorthSaying = 0.2;  // of all positions, those that are padding
constexpr int64_t kFewestSamples = 4;

// Positions of the batches that were put together, and those of them that hold a sample.
struct Positions {
  int64_t samples = 0;
  int64_t all = 0;
  int64_t filled = 0;
  int64_t longest = 0;
  std::vector<Row> ops;
};

// pad_sequence([67], [44], ...): its result is as long as the longest.
void add_sequence(const Model& model, Row op, Positions& out) {
  const std::string_view dims = input_dims_text(model, op);
  int64_t samples = 0;
  int64_t filled = 0;
  int64_t longest = 0;
  // The lists of numbers in the first input.
  const size_t end = dims.find("]]");
  for (size_t open = dims.find('[', 2); open != std::string_view::npos && open < end; open = dims.find('[', open + 1)) {
    const size_t close = dims.find(']', open);
    if (close == std::string_view::npos) break;
    const std::vector<analyze::Dims> each =
        analyze::parse_input_dims("[" + std::string(dims.substr(open, close + 1 - open)) + "]");
    if (each.empty() || each[0].empty()) continue;
    ++samples;
    filled += each[0][0];
    longest = std::max(longest, each[0][0]);
  }
  if (samples < 2) return;
  out.samples += samples;
  out.all += samples * longest;
  out.filled += filled;
  out.longest = std::max(out.longest, longest);
  out.ops.push_back(op);
}

// pad([67], [0, 61]) of numbers of tokens: each sample by itself, up to a length that all have.
void add_padded(const Model& model, Row op, Positions& out) {
  const Row detail = model.op_detail(op);
  if (detail == kNoRow) return;
  const StringId types = model.op_details.input_types[detail];
  const StringId values = model.op_details.concrete_inputs[detail];
  const std::vector<analyze::Dims> dims = analyze::parse_input_dims(input_dims_text(model, op));
  if (types == kNoString || values == kNoString || dims.empty() || dims[0].empty() || dims[0].size() > 2) return;
  if (!model.text(types).starts_with(R"(["long int")")) return;
  const std::string_view text = model.text(values);
  const size_t begin = text.find('[', 1);
  const size_t comma = text.find(',', begin);
  if (begin == std::string_view::npos || comma == std::string_view::npos) return;
  const std::string_view after = text.substr(comma + 1);
  int64_t more = 0;
  for (const char letter : after) {
    if (letter == ' ') continue;
    if (letter < '0' || letter > '9') break;
    more = more * 10 + (letter - '0');
    if (more > (int64_t{1} << 40)) return;
  }
  const int64_t rows = dims[0].size() == 2 ? dims[0][0] : 1;
  out.samples += rows;
  out.all += rows * (dims[0].back() + more);
  out.filled += rows * dims[0].back();
  out.longest = std::max(out.longest, dims[0].back() + more);
  out.ops.push_back(op);
}

Positions positions_of(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  Positions sequences;
  Positions padded;
  for (Row row = 0; row < host.size(); ++row) {
    if (!is_outermost_op(host, row) || !context.in_window(host.start_ns[row])) continue;
    const std::string_view name = model.text(host.name[row]);
    if (name == "aten::pad_sequence") add_sequence(model, row, sequences);
    if (name == "aten::pad" || name == "aten::constant_pad_nd") add_padded(model, row, padded);
  }
  return sequences.samples >= padded.samples ? sequences : padded;
}

// Without `part` of the work on positions: forward and backward, not the optimizer. Of operators on a CPU the call
// stays.
analyze::WhatIf less_padding(const Context& context, const analyze::Phases& phases, double part) {
  const Model& model = context.model;
  analyze::WhatIf change;
  const auto is_scaled = [](analyze::Phase phase) {
    return phase == analyze::Phase::kForward || phase == analyze::Phase::kBackward;
  };
  if (context.has_device_work) {
    for (Row row = 0; row < model.device_slices.size(); ++row) {
      if (model.device_slices.kind[row] != DeviceKind::kKernel || !context.holds(row)) continue;
      if (is_scaled(phases.device[row])) change.device.push_back({row, 1 - part});
    }
    return change;
  }
  const analyze::HostChain& chain = context.study->host->chains[0];
  const std::vector<double>& dispatch = context.study->dispatch;
  for (size_t i = chain.segment_after(context.window.start_ns); i < chain.segments.size(); ++i) {
    const analyze::HostSegment& segment = chain.segments[i];
    if (segment.start_ns >= context.window.end_ns) break;
    if (segment.activity != analyze::Activity::kOp || !is_scaled(phases.host[segment.slice])) continue;
    change.host.push_back({chain.lanes[0], std::max(segment.start_ns, context.window.start_ns),
                           std::min(segment.end_ns, context.window.end_ns), 1 - part * (1 - dispatch[i])});
  }
  return change;
}

std::vector<Finding> find_padding(const Context& context) {
  if (context.study == nullptr || context.study->host->chains.empty()) return {};
  const Positions positions = positions_of(context);
  if (positions.samples < kFewestSamples * context.step_count || positions.all == 0) return {};
  const double empty = 1 - static_cast<double>(positions.filled) / static_cast<double>(positions.all);
  if (empty < kWorthSaying) return {};
  const auto& phases = context.trace.get<analyze::find_phases>();
  Finding finding{.id = "padding", .confidence = Confidence::kMedium};
  // Sorted by length some padding stays, and some work does not depend on the length; attention is quadratic in it.
  constexpr double kAtWorst = 0.5;
  finding.gain = {context.gain_ns(less_padding(context, phases, kAtWorst * empty)),
                  context.gain_ns(less_padding(context, phases, empty))};
  finding.cost_ns = finding.gain.high_ns;
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.events = static_cast<int64_t>(positions.ops.size());
  add_longest(finding, context.model, positions.ops);
  finding.title = short_percent(empty) + " of what the batches hold is padding: " +
                  std::to_string(context.study->per_step(positions.samples)) + " samples a step of " +
                  std::to_string(positions.filled / positions.samples) + " positions on average, padded to up to " +
                  std::to_string(positions.longest);
  finding.try_text =
      "put samples of similar length into one batch, or pack them without padding (nested tensors, one long row with "
      "offsets)";
  finding.try_code = "samples.sort(key=len)  # and form batches of neighbors; shuffle the batches";
  finding.confirm_by = "time some steps with batches that are sorted by length";
  return {finding};
}

// embedding(weight, indices, padding_idx, ...): a number of -1 means that there is none.
bool has_padding_index(const Model& model, Row op) {
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || model.op_details.concrete_inputs[detail] == kNoString) return false;
  const std::string_view values = model.text(model.op_details.concrete_inputs[detail]);
  constexpr std::string_view kBeforeIndex = R"(["", "", ")";
  if (!values.starts_with(kBeforeIndex) || values.size() == kBeforeIndex.size()) return false;
  const char first = values[kBeforeIndex.size()];
  return first >= '0' && first <= '9';
}

std::string times_text(const analyze::Dims& dims) {
  std::string text;
  for (const int64_t size : dims) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

}  // namespace

std::string unseen_padding(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const StringId embedding = model.strings.find("aten::embedding");
  const StringId attention = model.strings.find("aten::scaled_dot_product_attention");
  if (embedding == kNoString && attention == kNoString) return {};
  constexpr size_t kMask = 3;  // after queries, keys and values
  for (Row row = 0; row < host.size(); ++row) {
    const bool looks_up = embedding != kNoString && host.name[row] == embedding;
    if (!looks_up && (attention == kNoString || host.name[row] != attention)) continue;
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    const std::vector<analyze::Dims> dims = analyze::parse_input_dims(input_dims_text(model, row));
    const bool is_padded = looks_up && dims.size() > 1 && dims[1].size() == 2 && has_padding_index(model, row);
    const bool is_masked = !looks_up && dims.size() > kMask && dims[0].size() == 4 && dims[kMask].size() == 4 &&
                           dims[0][0] > 1 && dims[kMask][0] == dims[0][0];
    if (!is_padded && !is_masked) continue;
    const analyze::Dims batch = is_padded ? dims[1] : analyze::Dims{dims[0][0], dims[0][2]};
    return std::string(is_padded ? "the token embedding has a padding_idx"
                                 : "attention has a mask for each sample of the batch") +
           ": samples may come padded, and a trace has shapes but no values, so how much of the " + times_text(batch) +
           " positions is padding is not judged; count it: (tokens == pad).float().mean()";
  }
  return {};
}

std::vector<Rule> padding_rules() {
  return {
      {"padding", "waste", 0.05, true,
       "Samples of different lengths are padded to one length, and all operators compute on the padding as well.\n\n"
       "Detected from shapes: pad_sequence gets samples of different lengths, or each sample of token ids is padded\n"
       "separately (pad, constant_pad_nd), on the training thread or another recorded one. A fifth of all positions\n"
       "or more must be padding. Batches that arrive already padded from DataLoader workers or a file cannot be\n"
       "detected, because a trace has shapes and no values; a note says so where an embedding's padding_idx or a\n"
       "mask suggests padding. The gain is a replay in which operators outside the optimizer are shorter by half of\n"
       "that share (lower end) or all of it (upper end).\n\n"
       "What to do: batches of samples of similar length (sorted, or in buckets); packing; nested tensors.\n\n"
       "When not: shapes must stay the same (CUDA graphs, or a compiler that would recompile for each length).",
       find_padding},
  };
}

}  // namespace firelane::advise

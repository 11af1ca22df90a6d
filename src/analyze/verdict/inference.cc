#include "analyze/verdict/inference.h"

#include <algorithm>

#include "analyze/common/median.h"
#include "analyze/device/device_work.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/steps/find_steps.h"
#include "analyze/steps/step_spans.h"

namespace firelane::analyze {

namespace {

bool names(std::string_view text, std::string_view lower, std::string_view upper) {
  return text.find(lower) != std::string_view::npos || text.find(upper) != std::string_view::npos;
}

bool has_backward(const Model& model) {
  const HostSlices& host = model.host_slices;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] == HostKind::kOp && host.role[row] == HostRole::kBackwardNode) return true;
  }
  return false;
}

// Passes that the program names itself: outermost annotations with prefill or decode in their name.
std::vector<GenerationPass> annotated_passes(const Model& model) {
  const HostSlices& host = model.host_slices;
  std::vector<GenerationPass> passes;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kAnnotation) continue;
    const std::string_view name = model.text(host.name[row]);
    const bool prefill = names(name, "prefill", "Prefill");
    if (!prefill && !names(name, "decode", "Decode")) continue;
    const bool nested = !passes.empty() && host.end_ns(row) <= passes.back().start_ns + passes.back().duration_ns;
    if (nested) continue;
    passes.push_back({.prefill = prefill, .start_ns = host.start_ns[row], .duration_ns = host.duration_ns[row]});
  }
  std::sort(passes.begin(), passes.end(),
            [](const GenerationPass& a, const GenerationPass& b) { return a.start_ns < b.start_ns; });
  return passes;
}

struct Embedding {
  int64_t start_ns = 0;
  int64_t table = 0;  // elements
  int64_t batch = 1;
  int64_t tokens = 0;
};

std::vector<Embedding> embeddings(const Model& model) {
  std::vector<Embedding> out;
  const OpDetails& ops = model.op_details;
  for (Row detail = 0; detail < ops.size(); ++detail) {
    const Row slice = ops.slice[detail];
    if (model.text(model.host_slices.name[slice]) != "aten::embedding") continue;
    const std::vector<Dims> dims = parse_input_dims(model.text(ops.input_dims[detail]));
    if (dims.size() < 2 || dims[0].size() != 2 || dims[1].empty()) continue;
    Embedding each{.start_ns = model.host_slices.start_ns[slice], .table = product_of_sizes(dims[0][0], dims[0][1])};
    each.tokens = dims[1].back();
    for (size_t i = 0; i + 1 < dims[1].size(); ++i) each.batch = product_of_sizes(each.batch, dims[1][i]);
    out.push_back(each);
  }
  int64_t largest = 0;
  for (const Embedding& each : out) largest = std::max(largest, each.table);
  std::erase_if(out, [&](const Embedding& each) { return each.table != largest; });
  std::sort(out.begin(), out.end(), [](const Embedding& a, const Embedding& b) { return a.start_ns < b.start_ns; });
  return out;
}

std::vector<GenerationPass> shaped_passes(const Model& model) {
  std::vector<GenerationPass> passes;
  for (const Embedding& each : embeddings(model)) {
    passes.push_back(
        {.prefill = each.tokens > 1, .batch = each.batch, .tokens = each.tokens, .start_ns = each.start_ns});
  }
  const bool has_decode = std::any_of(passes.begin(), passes.end(), [](const auto& pass) { return !pass.prefill; });
  if (!has_decode) return {};  // an encoder, or training
  for (size_t i = 0; i + 1 < passes.size(); ++i) passes[i].duration_ns = passes[i + 1].start_ns - passes[i].start_ns;
  passes.back().duration_ns = counted_span(model).end_ns - passes.back().start_ns;
  return passes;
}

// Lengthens passes until the device has done their work, and adds what that was.
void add_work(const Model& model, bool touching, std::vector<GenerationPass>& passes) {
  std::vector<FoundStep> windows;  // on the host
  std::vector<StepMoments> moments;
  for (const GenerationPass& pass : passes) {
    const auto number = static_cast<int64_t>(windows.size()) * (touching ? 1 : 2);
    windows.push_back({.number = number, .start_ns = pass.start_ns, .end_ns = pass.start_ns + pass.duration_ns});
    moments.push_back({.begin_ns = pass.start_ns, .end_ns = windows.back().end_ns, .followed = touching});
  }
  const DeviceSlices& device = model.device_slices;
  for (Row row = 0; row < device.size(); ++row) {
    if (!is_device_work(device.kind[row]) || !is_counted(model, row)) continue;
    const size_t pass = step_of_work(model, windows, row);
    if (pass == SIZE_MAX) continue;
    moments[pass].device_end_ns = std::max(moments[pass].device_end_ns, device.end_ns(row));
    passes[pass].kernels += device.kind[row] == DeviceKind::kKernel;
  }
  const std::vector<Interval> spans = lay_spans(moments, passes.empty() ? 0 : passes.front().start_ns);
  const IntervalSet busy = device_busy(model);
  for (size_t i = 0; i < passes.size(); ++i) {
    passes[i].start_ns = spans[i].start_ns;
    passes[i].duration_ns = spans[i].end_ns - spans[i].start_ns;
    passes[i].device_busy_ns = busy.covered_ns(spans[i].start_ns, spans[i].end_ns);
  }
  const OpDetails& ops = model.op_details;
  for (Row detail = 0; detail < ops.size(); ++detail) {
    const Row slice = ops.slice[detail];
    if (model.text(model.host_slices.name[slice]) != "aten::scaled_dot_product_attention") continue;
    const size_t pass = step_at(windows, model.host_slices.start_ns[slice]);
    if (pass == SIZE_MAX || passes[pass].context != kNoNumber) continue;
    const std::vector<Dims> dims = parse_input_dims(model.text(ops.input_dims[detail]));
    if (dims.size() > 1 && dims[1].size() >= 2) passes[pass].context = dims[1][dims[1].size() - 2];
  }
}

// Whether a prefill goes on with the prompt of the one before.
bool is_next_chunk(const GenerationPass& before, const GenerationPass& pass) {
  return before.prefill && pass.prefill && pass.batch == before.batch && before.context > 0 &&
         pass.context > before.context && pass.context - before.context == pass.tokens;
}

void sum_up(Inference& out) {
  std::vector<int64_t> decodes;
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  bool batch_known = true;
  for (size_t i = 0; i < out.passes.size(); ++i) {
    const GenerationPass& pass = out.passes[i];
    batch_known = batch_known && pass.batch != kNoNumber;
    if (pass.prefill) {
      ++out.prefills;
      out.prefill_ns += pass.duration_ns;
      prompt_tokens += pass.batch != kNoNumber ? pass.batch * pass.tokens : 0;
      if (i == 0 || !is_next_chunk(out.passes[i - 1], pass)) ++out.requests;
      if (out.requests == 1 && decodes.empty()) {
        out.time_to_first_token_ns = pass.start_ns + pass.duration_ns - out.passes.front().start_ns;
      }
      continue;
    }
    ++out.decodes;
    out.decode_ns += pass.duration_ns;
    new_tokens += pass.batch != kNoNumber ? pass.batch : 0;
    decodes.push_back(pass.duration_ns);
    if (decodes.size() == 1) out.batch = pass.batch;
    if (pass.batch != out.batch) out.batch = kNoNumber;
  }
  if (!out.passes.empty() && !out.passes.front().prefill) out.time_to_first_token_ns = kNoNumber;
  if (!decodes.empty()) {
    out.time_per_token_ns = median(decodes);
    out.min_token_ns = *std::min_element(decodes.begin(), decodes.end());
    out.max_token_ns = *std::max_element(decodes.begin(), decodes.end());
  }
  const auto rate = [](int64_t tokens, int64_t ns) {
    return ns <= 0 ? -1 : static_cast<double>(tokens) * 1e9 / static_cast<double>(ns);
  };
  if (batch_known && out.decodes > 0) out.decode_tokens_per_s = rate(new_tokens, out.decode_ns);
  if (batch_known && out.prefills > 0) out.prefill_tokens_per_s = rate(prompt_tokens, out.prefill_ns);
}

}  // namespace

Inference find_inference(const Model& model) {
  Inference out;
  out.is_training = has_backward(model);
  if (out.is_training) return out;
  out.passes = annotated_passes(model);
  out.by_annotation = !out.passes.empty();
  if (!out.by_annotation) out.passes = shaped_passes(model);
  add_work(model, !out.by_annotation, out.passes);
  sum_up(out);
  return out;
}

}  // namespace firelane::analyze

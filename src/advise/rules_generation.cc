// Text generation: a prefix that every token recomputes, a cache that every token copies.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "advise/evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/device/device_peaks.h"
#include "analyze/device/kernel_traits.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"

namespace firelane::advise {

namespace {

constexpr double kShortKernelNs = 3000;  // of one position: little more than its start
constexpr double kShortCallNs = 5000;
constexpr double kRealBandwidth = 0.6;  // of the memory's bandwidth that small kernels reach
constexpr double kCacheOps = 0.4;       // of a pass over one token: what writing and reading the cache adds at worst
constexpr int64_t kShortestPrefix = 8;
constexpr size_t kLeastAppends = 4;  // calls in a row: fewer may be a tensor put together once
constexpr int64_t kLeastRatio = 8;   // what is kept, to what is appended

bool has_backward(const Context& context) { return context.trace.get<analyze::find_phases>().has_backward; }

// One pass of a model over tokens: from its token embedding to the next one.
struct Pass {
  Row embedding = kNoRow;
  int64_t batch = 1;
  int64_t tokens = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool continues = false;  // the tokens of the pass before it and one more
};

// By the table with the most elements: positions and types have smaller ones.
std::vector<Pass> passes_of(const Context& context) {
  const Model& model = context.model;
  const OpDetails& ops = model.op_details;
  std::vector<std::pair<int64_t, Pass>> all;  // with the size of the table
  int64_t largest = 0;
  for (Row detail = 0; detail < ops.size(); ++detail) {
    const Row op = ops.slice[detail];
    if (model.text(model.host_slices.name[op]) != "aten::embedding") continue;
    const std::vector<analyze::Dims> dims = analyze::parse_input_dims(model.text(ops.input_dims[detail]));
    if (dims.size() < 2 || dims[0].size() != 2 || dims[1].empty()) continue;
    Pass pass{.embedding = op, .tokens = dims[1].back(), .start_ns = model.host_slices.start_ns[op]};
    for (size_t i = 0; i + 1 < dims[1].size(); ++i) pass.batch *= dims[1][i];
    const int64_t table = dims[0][0] * dims[0][1];
    largest = std::max(largest, table);
    all.emplace_back(table, pass);
  }
  std::vector<Pass> passes;
  for (const auto& [table, pass] : all) {
    if (table == largest && context.in_window(pass.start_ns)) passes.push_back(pass);
  }
  std::sort(passes.begin(), passes.end(), [](const Pass& a, const Pass& b) { return a.start_ns < b.start_ns; });
  for (size_t i = 0; i < passes.size(); ++i) {
    passes[i].end_ns = i + 1 < passes.size() ? passes[i + 1].start_ns : context.window.end_ns;
    passes[i].continues = i > 0 && passes[i].batch == passes[i - 1].batch &&
                          passes[i].tokens == passes[i - 1].tokens + 1 && passes[i].tokens > kShortestPrefix;
  }
  return passes;
}

// How long a kernel would take for one position of each sequence; its own time when it does not go over positions.
class OnePosition {
 public:
  explicit OnePosition(const Model& model) : model_(model), traits_(model), tensors_(model) {}

  double keep(Row kernel, const Pass& pass) {
    const DeviceSlices& device = model_.device_slices;
    const auto now_ns = static_cast<double>(std::max<int64_t>(1, device.duration_ns[kernel]));
    const Row op = device.op[kernel];
    const analyze::DevicePeaks* peaks = analyze::peaks_of(model_, device.device[kernel]);
    double bytes = 0;
    bool over_positions = op == kNoRow;
    if (op != kNoRow) {
      const std::vector<analyze::OpTensor>& inputs = tensors_.of(op);
      const bool attends = traits_.of(device.name[kernel]).kernel_class == analyze::KernelClass::kAttention;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const bool scales = std::any_of(inputs[i].dims.begin(), inputs[i].dims.end(), [&](int64_t size) {
          return size == pass.tokens || size == pass.tokens * pass.batch;
        });
        over_positions = over_positions || scales;
        const bool is_read_whole = !scales || (attends && i > 0);  // weights; keys and values
        bytes += static_cast<double>(inputs[i].bytes) / (is_read_whole ? 1.0 : static_cast<double>(pass.tokens));
      }
    }
    if (!over_positions) return 1;
    const double read_ns = peaks == nullptr ? 0 : bytes / (kRealBandwidth * peaks->bandwidth_gb_s);
    const double then_ns = std::max({kShortKernelNs, read_ns, now_ns / static_cast<double>(pass.tokens)});
    return std::min(1.0, then_ns / now_ns);
  }

 private:
  const Model& model_;
  analyze::TraitsOfNames traits_;
  analyze::InputTensors tensors_;
};

const Pass* pass_at(const std::vector<Pass>& passes, int64_t time_ns) {
  const auto after =
      std::partition_point(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.start_ns <= time_ns; });
  return after == passes.begin() ? nullptr : &*std::prev(after);
}

// Whether every text begins with as many tokens as the others: then it may be the same prompt each time.
bool is_same_prompt(const std::vector<Pass>& passes) {
  int64_t tokens = 0;
  int64_t prompts = 0;
  for (size_t i = 0; i + 1 < passes.size(); ++i) {
    if (passes[i].continues || !passes[i + 1].continues) continue;
    if (tokens != 0 && passes[i].tokens != tokens) return false;
    tokens = passes[i].tokens;
    ++prompts;
  }
  return prompts > 1;
}

void add_device_work(const Context& context, const std::vector<Pass>& passes, Evidence& evidence) {
  const Model& model = context.model;
  const bool same_prompt = is_same_prompt(passes);
  OnePosition one(model);
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (model.device_slices.kind[row] != DeviceKind::kKernel || launch == kNoRow) continue;
    const Pass* pass = pass_at(passes, model.host_slices.start_ns[launch]);
    if (pass == nullptr || pass->tokens <= kShortestPrefix) continue;
    const double keep = one.keep(row, *pass);
    if (keep >= 1) continue;
    const bool begins = !pass->continues && pass != &passes.back() && (pass + 1)->continues;
    if (pass->continues) evidence.add_device(row, keep, keep);
    if (begins && same_prompt) evidence.add_beside(row, 1, keep);
  }
}

// Without a device: the outermost ops with an input that goes over the positions.
void add_host_work(const Context& context, const std::vector<Pass>& passes, Evidence& evidence) {
  const HostSlices& host = context.model.host_slices;
  analyze::InputTensors tensors(context.model);
  for (Row row = 0; row < host.size(); ++row) {
    const bool outermost = host.parent[row] == kNoRow || host.kind[host.parent[row]] != HostKind::kOp;
    if (host.kind[row] != HostKind::kOp || !outermost) continue;
    const Pass* pass = pass_at(passes, host.start_ns[row]);
    if (pass == nullptr || !pass->continues || host.lane[row] != host.lane[pass->embedding]) continue;
    const std::vector<analyze::OpTensor>& inputs = tensors.of(row);
    const bool scales = std::any_of(inputs.begin(), inputs.end(), [&](const analyze::OpTensor& tensor) {
      return std::find(tensor.dims.begin(), tensor.dims.end(), pass->tokens) != tensor.dims.end();
    });
    const double least = kShortCallNs / static_cast<double>(std::max<int64_t>(1, context.took_ns(row)));
    const double keep = std::min(1.0, std::max(least, 1.0 / static_cast<double>(pass->tokens)));
    if (scales && keep < 1) evidence.add_call(row, std::min(1.0, 2 * keep), keep);
  }
}

std::vector<Finding> find_recomputed_prefix(const Context& context) {
  const std::vector<Pass> passes = passes_of(context);
  const auto continues = [](const Pass& pass) { return pass.continues; };
  const int64_t count = std::count_if(passes.begin(), passes.end(), continues);
  if (count < 2 || has_backward(context)) return {};
  Evidence evidence(context);
  if (context.has_device_work) {
    add_device_work(context, passes, evidence);
  } else {
    add_host_work(context, passes, evidence);
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "recomputed-prefix",
                  .try_text = "keep the keys and values of earlier tokens (a KV cache), and compute the new token only",
                  .try_code = "model.generate(..., use_cache=True)",
                  .confidence = Confidence::kMedium,
                  .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  // A cache adds operators of its own to each pass, which the replay does not have.
  const int64_t rest_ns = std::max<int64_t>(0, context.step_ns - finding.gain.low_ns);
  finding.gain.low_ns -= std::min(finding.gain.low_ns, static_cast<int64_t>(kCacheOps * static_cast<double>(rest_ns)));
  int64_t shortest = INT64_MAX;
  int64_t longest = 0;
  for (const Pass& pass : passes) {
    if (!pass.continues) continue;
    shortest = std::min(shortest, pass.tokens);
    longest = std::max(longest, pass.tokens);
    finding.ranges.push_back({pass.start_ns, pass.end_ns});
    if (finding.ranges.size() > 5) finding.ranges.pop_back();
  }
  finding.title = "each new token recomputes all tokens before it: " + counted(count, "pass", "passes") + " over " +
                  std::to_string(shortest) + " to " + std::to_string(longest) + " tokens, each one longer, take " +
                  short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

// The shapes in the first list of tensors: [[[16, 4096], [16, 1]], []] gives {{16, 4096}, {16, 1}}.
std::vector<analyze::Dims> list_of_dims(std::string_view json) {
  const size_t end = json.find("]]");
  if (!json.starts_with("[[[") || end == std::string_view::npos) return {};
  return analyze::parse_input_dims(json.substr(1, end + 1));
}

// A call of torch.cat that appends a little to something large.
struct Append {
  Row op = kNoRow;
  std::string to;      // the shape without its length
  int64_t length = 0;  // before
  int64_t added = 0;
};

bool is_append(const Model& model, Row op, Append& out) {
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || model.op_details.input_dims[detail] == kNoString) return false;
  const std::vector<analyze::Dims> parts = list_of_dims(model.text(model.op_details.input_dims[detail]));
  if (parts.size() < 2) return false;
  const analyze::Dims& first = parts.front();
  size_t along = SIZE_MAX;
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].size() != first.size()) return false;
    for (size_t j = 0; j < first.size(); ++j) {
      if (parts[i][j] == first[j]) continue;
      if (along != SIZE_MAX && along != j) return false;
      along = j;
    }
  }
  if (along == SIZE_MAX) return false;
  // No tensor is longer: sizes of a broken trace would overflow.
  constexpr int64_t kLongest = int64_t{1} << 50;
  const auto is_broken = [&](const analyze::Dims& part) { return part[along] < 0 || part[along] > kLongest; };
  if (std::any_of(parts.begin(), parts.end(), is_broken)) return false;
  out = {.op = op, .length = first[along]};
  for (size_t i = 1; i < parts.size(); ++i) out.added += parts[i][along];
  analyze::Dims rest = first;
  rest[along] = -static_cast<int64_t>(along) - 1;
  out.to = analyze::dims_text({rest}) + "+" + std::to_string(out.added);
  return out.added > 0 && out.length >= kLeastRatio * out.added;
}

// Calls that take the result of an earlier one, by its shape.
std::vector<Append> growing_appends(const Context& context) {
  const Model& model = context.model;
  const StringId cat = model.strings.find("aten::cat");
  std::vector<Append> all;
  std::map<std::string, std::vector<int64_t>> lengths;
  if (cat == kNoString) return all;
  for (Row row = 0; row < model.host_slices.size(); ++row) {
    Append append;
    if (model.host_slices.name[row] != cat || model.host_slices.kind[row] != HostKind::kOp) continue;
    if (!context.in_window(model.host_slices.start_ns[row]) || !is_append(model, row, append)) continue;
    lengths[append.to].push_back(append.length);
    all.push_back(append);
  }
  for (auto& [to, of] : lengths) std::sort(of.begin(), of.end());
  std::erase_if(all, [&](const Append& append) {
    const std::vector<int64_t>& of = lengths[append.to];
    return !std::binary_search(of.begin(), of.end(), append.length + append.added) &&
           !std::binary_search(of.begin(), of.end(), append.length - append.added);
  });
  return all;
}

std::vector<Finding> find_growing_input(const Context& context) {
  if (has_backward(context)) return {};  // autograd needs each of them
  const Model& model = context.model;
  const std::vector<Append> appends = growing_appends(context);
  std::map<Row, double> keep_of;  // by op
  for (const Append& append : appends) {
    keep_of[append.op] = static_cast<double>(append.added) / static_cast<double>(append.length + append.added);
  }
  if (keep_of.size() < kLeastAppends) return {};
  Evidence evidence(context);
  if (context.has_device_work) {
    for (Row row = 0; row < model.device_slices.size(); ++row) {
      const auto found = keep_of.find(model.device_slices.op[row]);
      if (found == keep_of.end()) continue;
      const double least =
          kShortKernelNs / static_cast<double>(std::max<int64_t>(1, model.device_slices.duration_ns[row]));
      const double keep = std::min(1.0, std::max(found->second, least));
      evidence.add_device(row, keep, keep);
    }
  } else {
    for (const auto& [op, part] : keep_of) {
      const double least = kShortCallNs / static_cast<double>(std::max<int64_t>(1, context.took_ns(op)));
      const double keep = std::min(1.0, std::max(part, least));
      evidence.add_call(op, std::min(1.0, 1.5 * keep), keep);
    }
  }
  if (evidence.empty()) return {};
  Finding finding{.id = "growing-input",
                  .try_text = "allocate it once at its final length, and write new entries in place",
                  .try_code = "cache[:, :, at : at + 1] = new  # instead of cache = torch.cat((cache, new), dim=2)",
                  .confidence = Confidence::kMedium,
                  .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  const Append& largest = *std::max_element(appends.begin(), appends.end(),
                                            [](const Append& a, const Append& b) { return a.length < b.length; });
  const std::string_view dims = model.text(model.op_details.input_dims[model.op_detail(largest.op)]);
  const size_t end = dims.find("]]");
  finding.title = "torch.cat copies all of a tensor to append a little to it, and again for the next: " +
                  counted(static_cast<int64_t>(keep_of.size()), "call", "calls") + " take " +
                  short_percent(finding.share_of_step) +
                  " of a step, and each takes longer (last: " + std::string(dims.substr(1, end + 1)) + ")";
  return {finding};
}

}  // namespace

std::vector<Rule> generation_rules() {
  return {
      {"recomputed-prefix", "generation", 0.03, true,
       "The number of tokens that go into the model grows by one from pass to pass: every new token recomputes all\n"
       "tokens before it. With a KV cache only the new position is computed; it reads the keys and values of the\n"
       "others.\n\n"
       "How it is found: shapes of the token embedding, [batch, tokens], in a trace without a backward pass. Needs\n"
       "shapes.\n\n"
       "What to do: model.generate(use_cache=True), or pass past_key_values and the last token only. The first pass\n"
       "over the prompt (prefill) remains. The upper end of the gain leaves it out, too, when every text begins\n"
       "with a prompt of the "
       "same length: keep the cache of a prompt that does not change.\n"
       "\n"
       "When not: a model that looks at later tokens too (an encoder), for which earlier positions really change.",
       find_recomputed_prefix},
      {"growing-input", "generation", 0.02, true,
       "torch.cat writes a new tensor: to append one entry it copies all existing ones. Over many calls the copied\n"
       "bytes grow with the square of the length. Typical: a KV cache, a list of results or a replay buffer that is\n"
       "a tensor.\n\n"
       "How it is found: calls whose first input has the shape of an earlier call's result. Needs shapes.\n\n"
       "What to do: allocate the final length once and write into a slice of it (StaticCache in transformers); or "
       "collect\n"
       "the parts in a Python list, and call torch.cat once at the end.\n\n"
       "When not: few, short tensors; or parts that autograd has to keep separate.",
       find_growing_input},
  };
}

}  // namespace firelane::advise

#include "analyze/verdict/loop_rounds.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "analyze/host/cpu_ops.h"
#include "analyze/host/host_time.h"
#include "analyze/ops/op_tensors.h"
#include "base/text.h"
#include "model/host_role.h"

namespace firelane::analyze {

namespace {

constexpr uint16_t kUnknown = 0x8000;     // traits of a name that was not looked at
constexpr size_t kLongestPlainBody = 16;  // longer ones with products and without a read or a copy look like layers
constexpr size_t kLongestUpdate = 4;      // operators in place, for one tensor after another

template <size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

uint16_t traits_of(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kPick = {
      "aten::select",       "aten::slice",  "aten::index",         "aten::embedding", "aten::embedding_bag",
      "aten::index_select", "aten::gather", "aten::masked_select", "aten::index_add"};
  static constexpr std::array<std::string_view, 4> kRead = {"aten::item", "aten::is_nonzero",
                                                            "aten::_local_scalar_dense", "aten::equal"};
  static constexpr std::array<std::string_view, 3> kCopy = {"aten::to", "aten::copy_", "aten::_to_copy"};
  static constexpr std::array<std::string_view, 4> kMatmuls = {"aten::linear", "aten::matmul", "aten::mm",
                                                               "aten::addmm"};
  static constexpr std::array<std::string_view, 4> kSample = {"aten::argmax", "aten::multinomial", "aten::topk",
                                                              "aten::max"};
  uint16_t traits = 0;
  if (role_of(name) == HostRole::kBackwardNode) {
    static constexpr std::array<std::string_view, 4> kWeights = {": TBackward", ": ConvolutionBackward", "RnnBackward",
                                                                 ": MmBackward"};
    traits = kAutograd;
    if (contains(name, "AccumulateGrad")) traits |= kAccumulates;
    const auto is_in_name = [&](std::string_view each) { return contains(name, each); };
    if (std::any_of(kWeights.begin(), kWeights.end(), is_in_name)) traits |= kWeight;
    return traits;
  }
  if (is_one_of(name, kRead)) return kReads;
  if (is_view_op(name)) traits |= kIsView;
  if (is_one_of(name, kPick) || name.ends_with("_cell")) traits |= kPicks;
  if (name.starts_with("aten::embedding")) traits |= kEmbeds;
  if (is_one_of(name, kSample)) traits |= kSamples;
  if (is_one_of(name, kCopy)) traits |= kCopies;
  if (is_one_of(name, kCopy) && name != "aten::copy_") traits |= kMoves;
  if (is_one_of(name, kMatmuls)) traits |= kMatmul;
  if (name == "aten::linear" || name == "aten::addmm") traits |= kHasWeights;
  const bool is_norm = name.ends_with("_norm") && !contains(name, "linalg") && !contains(name, "_weight_norm");
  if (is_norm || contains(name, "conv") || contains(name, "scaled_dot_product") || name == "aten::softmax" ||
      name == "aten::rsqrt") {
    traits |= kLayer;
  }
  if (is_norm || contains(name, "conv")) traits |= kHasWeights;
  return traits;
}

// Rounds of a backward pass that compute gradients of weights which no parameter gets in the round: those of all
// rounds are added up first, so that it is the same weights again and again.
bool shares_weights(std::span<const Token> tokens, const Repeat& repeat) {
  uint16_t any = 0;
  for (size_t i = repeat.first(); i < repeat.starts[1]; ++i) {
    const uint16_t traits = tokens[i].traits;
    if ((traits & kAutograd) == 0) return false;
    any |= traits;
  }
  return (any & kWeight) != 0 && (any & kAccumulates) == 0;
}
}  // namespace

Rounds::Rounds(const Model& model)
    : model_(model),
      data_(model),
      nonzero_(model.strings.find("aten::nonzero")),
      unbind_(model.strings.find("aten::unbind")) {
  traits_.assign(model.strings.size(), kUnknown);
}

uint16_t Rounds::traits(Row row) {
  uint16_t& known = traits_[static_cast<uint32_t>(model_.host_slices.name[row])];
  if (known == kUnknown) known = traits_of(model_.text(model_.host_slices.name[row]));
  return known;
}

std::vector<Token> Rounds::tokens_of(LaneId lane) {
  const HostSlices& host = model_.host_slices;
  std::vector<Token> tokens;
  uint16_t before = 0;
  const HostChain alone{.lanes = {lane}, .segments = {}};
  each_outermost(
      model_, alone, [&](Row row) { return host.kind[row] == HostKind::kOp; },
      [&](Row row) {
        const uint16_t own = traits(row);
        if ((own & kIsView) != 0) {
          before |= own & kPicks;
          if (host.name[row] == unbind_) unbound_.push_back(row);
          return;
        }
        if ((own & kAutograd) != 0) backward_starts_.push_back(host.start_ns[row]);
        const uint16_t asks = finds_nonzero(row) ? kAsks : 0;
        tokens.push_back({row, host.name[row], static_cast<uint16_t>(own | before | asks)});
        before = 0;
      });
  std::sort(backward_starts_.begin(), backward_starts_.end());
  std::sort(unbound_.begin(), unbound_.end(), [&](Row a, Row b) { return host.start_ns[a] < host.start_ns[b]; });
  return tokens;
}

// aten::index with a mask, unique and their like look for what is not zero.
bool Rounds::finds_nonzero(Row op) const {
  if (nonzero_ == kNoString) return false;
  const HostSlices& host = model_.host_slices;
  const auto lane_end = model_.lanes.host_end[static_cast<size_t>(host.lane[op])];
  for (Row row = op + 1; row < lane_end && host.start_ns[row] < host.end_ns(op); ++row) {
    if (host.name[row] == nonzero_) return true;
  }
  return false;
}

void Rounds::see(std::span<const Token> tokens, const Repeat& repeat) {
  if (shares_weights(tokens, repeat)) rounds_with_shared_weights_.push_back(repeat.rounds());
}

bool Rounds::has_shared_weights(const Repeat& repeat) const {
  return std::any_of(rounds_with_shared_weights_.begin(), rounds_with_shared_weights_.end(), [&](size_t rounds) {
    return std::max(rounds, repeat.rounds()) - std::min(rounds, repeat.rounds()) <= 2;
  });
}

bool Rounds::goes_back(std::span<const Token> tokens, const Repeat& repeat) const {
  constexpr size_t kLookedAt = 3;
  const HostSlices& host = model_.host_slices;
  for (size_t round = 0; round < std::min(kLookedAt, repeat.rounds() - 1); ++round) {
    const int64_t start = host.start_ns[tokens[repeat.starts[round]].row];
    const int64_t end = host.start_ns[tokens[repeat.starts[round + 1]].row];
    const auto first = std::lower_bound(backward_starts_.begin(), backward_starts_.end(), start);
    if (first == backward_starts_.end() || *first >= end) return false;
  }
  return true;
}

// Rounds that differ are told from layers by less: each must pick its piece or ask for a number, without weights.
bool Rounds::is_uneven_loop(std::span<const Token> tokens, const Repeat& repeat) const {
  constexpr uint16_t kWithWeights = kLayer | kMatmul | kHasWeights | kAutograd | kEmbeds;
  size_t asking = 0;
  bool in_step = true;  // of an optimizer
  for (size_t round = 0; round < repeat.rounds(); ++round) {
    uint16_t traits = 0;
    for (size_t i = repeat.starts[round]; i < repeat.starts[round + 1]; ++i) {
      traits |= tokens[i].traits;
      in_step = in_step && in_optimizer(tokens[i].row);
    }
    if ((traits & kWithWeights) != 0) return false;
    asking += (traits & (kPicks | kReads | kAsks)) != 0 ? 1 : 0;
  }
  return !in_step && asking * 10 >= repeat.rounds() * 9;
}

bool Rounds::is_loop(std::span<const Token> tokens, const Repeat& repeat) const {
  uint16_t first = 0;
  uint16_t second = 0;
  bool only_copies = true;
  bool in_step = true;  // of an optimizer
  bool in_place = false;
  bool all_in_place = true;
  bool autograd = true;
  const size_t period = repeat.starts[1] - repeat.first();
  for (size_t i = repeat.first(); i < repeat.starts[1]; ++i) {
    const Token& token = tokens[i];
    first |= token.traits;
    second |= tokens[i + period].traits;
    only_copies &= (token.traits & kCopies) != 0;
    autograd &= (token.traits & kAutograd) != 0;
    in_step &= in_optimizer(token.row);
    in_place |= model_.text(token.name).ends_with('_');
    all_in_place &= model_.text(token.name).ends_with('_');
  }
  if (autograd) return true;  // of() keeps those that belong to a loop
  const RoundData data = data_of(tokens, repeat);
  if (data == RoundData::kLayers) return false;
  const uint16_t all = first & second;
  if (only_copies || (in_step && in_place)) return false;
  if (goes_back(tokens, repeat)) return takes_one_sample(tokens, repeat);
  if ((all & kAutograd) != 0) return false;
  if (all_in_place && period <= kLongestUpdate) return !same_shapes(tokens, repeat);
  // The next round begins with what this one chose, as in decoding and rollouts, unless each brings its own input.
  const bool brings_input = (tokens[repeat.first()].traits & kMoves) != 0;
  if ((all & kSamples) != 0 && (all & kMatmul) != 0 && (all & kReads) == 0 && !brings_input) return false;
  const bool reads_or_copies = (all & (kReads | kCopies)) != 0;
  // Attention over one piece after another: heads, windows. A layer has weights.
  if ((first & kLayer) != 0 && (first & kHasWeights) == 0 && (all & kPicks) != 0) return true;
  if ((first & kLayer) != 0) {
    // A layer that is applied with one piece of its weights after another.
    if (data == RoundData::kSame) return true;
    const bool is_request = (all & kCopies) != 0 && (all & kReads) != 0;
    const bool is_pass = (all & kEmbeds) != 0 && ((all & kSamples) == 0 || (all & kMoves) != 0);
    return is_request || (is_pass && !grows(tokens, repeat)) || has_shared_weights(repeat);
  }
  if (period > kLongestPlainBody && (all & kMatmul) != 0 && !reads_or_copies) return has_shared_weights(repeat);
  if ((all & (kPicks | kReads | kAsks)) != 0 || is_over_pieces(tokens, repeat)) return true;
  if ((all & kCopies) != 0 && (all & kMatmul) != 0) return has_shared_weights(repeat);  // or casts of a layer
  constexpr uint16_t kOfLayers = kMatmul | kHasWeights | kEmbeds;
  if (data == RoundData::kItems && !in_step && (first & kOfLayers) == 0 && !in_loader(tokens[repeat.first()].row) &&
      is_for_lists(tokens, repeat)) {
    return true;
  }
  return (function_of(tokens, repeat) != kNoRow && (all & kMatmul) == 0) || has_shared_weights(repeat);
}

// Whether a round is what torch._foreach_* does for a list: operators element by element, norms and sums, random
// numbers; and not copies alone, which other findings know better.
bool Rounds::is_for_lists(std::span<const Token> tokens, const Repeat& repeat) const {
  static constexpr std::array<std::string_view, 13> kOthers = {"aten::norm",       "aten::linalg_vector_norm",
                                                               "aten::sign",       "aten::isfinite",
                                                               "aten::isnan",      "aten::isinf",
                                                               "aten::all",        "aten::any",
                                                               "aten::nan_to_num", "aten::floor",
                                                               "aten::round",      "aten::std",
                                                               "aten::var"};
  static constexpr std::array<std::string_view, 4> kRandom = {"rand", "normal_", "uniform_", "bernoulli"};
  bool computes = false;
  for (size_t i = repeat.first(); i < repeat.starts[1]; ++i) {
    const std::string_view name = model_.text(tokens[i].name);
    if ((tokens[i].traits & kCopies) != 0 || name == "aten::clone" || name == "aten::detach" ||
        name.starts_with("aten::empty") || name.starts_with("aten::zeros") || name.starts_with("aten::ones")) {
      continue;
    }
    const KernelClass op = op_class(name);
    const bool is_random = std::any_of(kRandom.begin(), kRandom.end(), [&](auto each) { return contains(name, each); });
    if (op != KernelClass::kPointwise && op != KernelClass::kReduction && !is_random && !is_one_of(name, kOthers))
      return false;
    computes = true;
  }
  return computes;
}

// Whether a tensor is gone through (for piece in tensor): it was taken apart right before the first round, or before
// one that was not found to be alike, into as many pieces as there are rounds.
bool Rounds::is_over_pieces(std::span<const Token> tokens, const Repeat& repeat) const {
  const HostSlices& host = model_.host_slices;
  const size_t period = repeat.starts[1] - repeat.first();
  const Row first = tokens[repeat.first()].row;
  constexpr int64_t kLongestPauseNs = 1'000'000;  // where no op stands before it
  const int64_t from_ns = repeat.first() > period ? host.start_ns[tokens[repeat.first() - period - 1].row]
                                                  : host.start_ns[tokens[0].row] - kLongestPauseNs;
  const auto before = [&](Row op, int64_t time_ns) { return host.start_ns[op] < time_ns; };
  auto op = std::lower_bound(unbound_.begin(), unbound_.end(), from_ns, before);
  for (; op != unbound_.end() && host.start_ns[*op] < host.start_ns[first]; ++op) {
    if (host.lane[*op] != host.lane[first]) continue;
    const std::vector<OpTensor> inputs = input_tensors(model_, *op);
    if (inputs.empty() || inputs[0].dims.empty()) continue;
    const int64_t more = inputs[0].dims[0] - static_cast<int64_t>(repeat.rounds());
    if (more >= 0 && more <= 1) return true;
  }
  return false;
}

// Whether the layers of a pass take one sample. Passes over batches are gradient accumulation: memory sets their
// size.
bool Rounds::takes_one_sample(std::span<const Token> tokens, const Repeat& repeat) const {
  for (size_t i = repeat.first(); i < repeat.starts[1]; ++i) {
    if ((tokens[i].traits & (kHasWeights | kMatmul)) == 0) continue;
    const std::vector<OpTensor> inputs = input_tensors(model_, tokens[i].row);
    if (inputs.empty() || inputs[0].dims.empty()) continue;
    return inputs[0].dims.size() == 1 || inputs[0].dims[0] == 1;
  }
  return false;
}

// Whether what changes in place has the same shapes in all rounds: one tensor again and again, and not one parameter
// after another, which have weights and biases among them.
bool Rounds::same_shapes(std::span<const Token> tokens, const Repeat& repeat) const {
  const auto dims_of = [&](size_t token) {
    const Row detail = model_.op_detail(tokens[token].row);
    return detail == kNoRow ? kNoString : model_.op_details.input_dims[detail];
  };
  const StringId first = dims_of(repeat.first());
  if (first == kNoString) return false;
  for (size_t round = 1; round < repeat.rounds(); ++round) {
    if (dims_of(repeat.starts[round]) != first) return false;
  }
  return true;
}

// Whether inputs get larger from round to round, as a cache does: each round needs the one before.
bool Rounds::grows(std::span<const Token> tokens, const Repeat& repeat) const {
  const HostSlices& host = model_.host_slices;
  const auto elements = [&](size_t round) {
    const Row first = tokens[repeat.starts[round]].row;
    const Row end = tokens[repeat.starts[round + 1] - 1].row;
    int64_t sum = 0;
    for (Row row = first; row <= end; ++row) {
      if (host.kind[row] != HostKind::kOp) continue;
      for (const OpTensor& tensor : input_tensors(model_, row)) sum += tensor.elements;
    }
    return sum;
  };
  const size_t last = repeat.rounds() - 1;
  const int64_t first_sum = elements(0);
  const int64_t middle_sum = elements(last / 2);
  return first_sum < middle_sum && middle_sum < elements(last);
}

RoundData Rounds::data_of(std::span<const Token> tokens, const Repeat& repeat) const {
  std::vector<Row> starts;
  for (size_t round = 0; round < repeat.rounds(); ++round) starts.push_back(tokens[repeat.starts[round]].row);
  return data_.of(starts, tokens[repeat.end() - 1].row);
}

bool Rounds::lies_in(Row row, bool (*is_range)(HostRole)) const {
  const HostSlices& host = model_.host_slices;
  for (Row outer = host.parent[row]; outer != kNoRow; outer = host.parent[outer]) {
    if (is_range(host.role[outer])) return true;
  }
  return false;
}
bool Rounds::in_optimizer(Row row) const { return lies_in(row, is_of_optimizer); }
bool Rounds::in_loader(Row row) const { return lies_in(row, loads_batch); }

Row Rounds::function_of(std::span<const Token> tokens, const Repeat& repeat) const {
  const auto function = [&](size_t at) {
    const HostSlices& host = model_.host_slices;
    Row row = host.parent[tokens[at].row];
    while (row != kNoRow && host.kind[row] != HostKind::kPython) row = host.parent[row];
    return row;
  };
  const Row first = function(repeat.first());
  return first == function(repeat.starts[repeat.rounds() - 1]) ? first : kNoRow;
}

}  // namespace firelane::analyze

#include "analyze/verdict/loops.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string_view>

#include "analyze/host/cpu_ops.h"
#include "analyze/verdict/study.h"
#include "base/text.h"

namespace firelane::analyze {

namespace {

constexpr size_t kLeastRounds = 8;
constexpr size_t kLongestBody = 200;
constexpr size_t kLongestPlainBody = 16;  // longer ones without a read or a copy look like layers

// What an op says about the round that it is in.
enum Trait : uint8_t {
  kIsView = 1,
  kPicks = 2,   // takes a piece: select, slice, index, a table
  kReads = 4,   // brings a number to the host
  kCopies = 8,  // between devices or types
  kLayer = 16,  // normalization, convolution, attention
  kMatmul = 32,
  kAutograd = 64,
};

template <size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

uint8_t traits_of(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kPick = {
      "aten::select",       "aten::slice",  "aten::index",         "aten::embedding", "aten::embedding_bag",
      "aten::index_select", "aten::gather", "aten::masked_select", "aten::index_add"};
  static constexpr std::array<std::string_view, 4> kRead = {"aten::item", "aten::is_nonzero",
                                                            "aten::_local_scalar_dense", "aten::equal"};
  static constexpr std::array<std::string_view, 3> kCopy = {"aten::to", "aten::copy_", "aten::_to_copy"};
  static constexpr std::array<std::string_view, 4> kMatmuls = {"aten::linear", "aten::matmul", "aten::mm",
                                                               "aten::addmm"};
  uint8_t traits = 0;
  if (name.starts_with("autograd::engine::evaluate_function")) return kAutograd;
  if (is_one_of(name, kRead)) return kReads;
  if (is_view_op(name)) traits |= kIsView;
  if (is_one_of(name, kPick) || name.ends_with("_cell")) traits |= kPicks;
  if (is_one_of(name, kCopy)) traits |= kCopies;
  if (is_one_of(name, kMatmuls)) traits |= kMatmul;
  const bool is_norm = name.ends_with("_norm") && !contains(name, "linalg") && !contains(name, "_weight_norm");
  if (is_norm || contains(name, "conv") || contains(name, "scaled_dot_product") || name == "aten::softmax" ||
      name == "aten::rsqrt") {
    traits |= kLayer;
  }
  return traits;
}

struct Token {
  Row row = kNoRow;
  StringId name{};
  uint8_t traits = 0;  // with those of the views before it
};

struct Repeat {
  size_t first = 0;
  size_t period = 0;
  size_t rounds = 0;
};

// Every stretch in which names come again after `period` tokens.
void add_repeats(std::span<const Token> tokens, size_t period, std::vector<Repeat>& out) {
  size_t same = 0;
  for (size_t i = 0; i + period <= tokens.size(); ++i) {
    const bool equal = i + period < tokens.size() && tokens[i].name == tokens[i + period].name;
    if (equal) {
      ++same;
      continue;
    }
    const size_t rounds = same / period + 1;
    if (rounds >= kLeastRounds) out.push_back({i - same, period, rounds});
    same = 0;
  }
}

class LoopFinder {
 public:
  LoopFinder(const Model& model, const HostChain& chain) : model_(model), chain_(chain) {
    traits_.assign(model.strings.size(), kUnknown);
  }

  std::vector<Loop> of(const StepList& steps) {
    std::vector<std::vector<Token>> lanes;
    for (const LaneId lane : chain_.lanes) lanes.push_back(tokens_of(lane));
    std::vector<Loop> all;
    for (const FoundStep& step : steps.steps) {
      if (step.warm_up) continue;
      std::vector<Loop> found;
      for (const auto& tokens : lanes) add_loops(in_step(tokens, step), found);
      // The backward pass of a loop runs as many rounds.
      std::erase_if(found, [&](const Loop& loop) {
        return loop.backward && std::none_of(found.begin(), found.end(), [&](const Loop& other) {
                 return !other.backward && std::abs(other.rounds - loop.rounds) <= 2;
               });
      });
      std::sort(found.begin(), found.end(), [](const Loop& a, const Loop& b) { return a.start_ns < b.start_ns; });
      for (Loop& loop : found) all.push_back(std::move(loop));
    }
    return all;
  }

 private:
  static constexpr uint8_t kUnknown = 128;

  uint8_t traits(Row row) {
    uint8_t& known = traits_[static_cast<uint32_t>(model_.host_slices.name[row])];
    if (known == kUnknown) known = traits_of(model_.text(model_.host_slices.name[row]));
    return known;
  }

  std::vector<Token> tokens_of(LaneId lane) {
    const HostSlices& host = model_.host_slices;
    std::vector<Token> tokens;
    uint8_t before = 0;
    const HostChain alone{.lanes = {lane}, .segments = {}};
    each_outermost(
        model_, alone, [&](Row row) { return host.kind[row] == HostKind::kOp; },
        [&](Row row) {
          const uint8_t own = traits(row);
          if ((own & kIsView) != 0) {
            before |= own & kPicks;
            return;
          }
          tokens.push_back({row, host.name[row], static_cast<uint8_t>(own | before)});
          before = 0;
        });
    return tokens;
  }

  std::span<const Token> in_step(const std::vector<Token>& tokens, const FoundStep& step) const {
    const auto from = [&](int64_t time_ns) {
      return std::partition_point(tokens.begin(), tokens.end(),
                                  [&](const Token& token) { return model_.host_slices.start_ns[token.row] < time_ns; });
    };
    return {from(step.start_ns), from(step.end_ns)};
  }

  void add_loops(std::span<const Token> tokens, std::vector<Loop>& out) {
    std::vector<Repeat> repeats;
    const size_t longest = std::min(kLongestBody, tokens.size() / kLeastRounds);
    for (size_t period = 1; period <= longest; ++period) add_repeats(tokens, period, repeats);
    // The one that covers most first; of two that cover the same the shorter body.
    std::stable_sort(repeats.begin(), repeats.end(), [](const Repeat& a, const Repeat& b) {
      const size_t covers_a = a.period * a.rounds;
      const size_t covers_b = b.period * b.rounds;
      return covers_a != covers_b ? covers_a > covers_b : a.period < b.period;
    });
    std::vector<bool> taken(tokens.size(), false);
    for (const Repeat& repeat : repeats) {
      const size_t end = repeat.first + repeat.period * repeat.rounds;
      if (taken[repeat.first] || taken[end - 1] || taken[(repeat.first + end) / 2]) continue;
      if (!is_loop(tokens, repeat)) continue;
      std::fill(taken.begin() + static_cast<std::ptrdiff_t>(repeat.first),
                taken.begin() + static_cast<std::ptrdiff_t>(end), true);
      out.push_back(loop_of(tokens, repeat));
    }
  }

  bool is_loop(std::span<const Token> tokens, const Repeat& repeat) const {
    uint8_t first = 0;
    uint8_t second = 0;
    bool only_copies = true;
    bool in_step = true;  // of an optimizer
    bool in_place = false;
    bool autograd = true;
    for (size_t i = 0; i < repeat.period; ++i) {
      const Token& token = tokens[repeat.first + i];
      first |= token.traits;
      second |= tokens[repeat.first + repeat.period + i].traits;
      only_copies &= (token.traits & kCopies) != 0;
      autograd &= (token.traits & kAutograd) != 0;
      in_step &= in_optimizer(token.row);
      in_place |= model_.text(token.name).ends_with('_');
    }
    if (autograd) return true;  // of() keeps those that belong to a loop
    const uint8_t all = first & second;
    if (only_copies || (in_step && in_place) || (all & kAutograd) != 0) return false;
    const bool reads_or_copies = (all & (kReads | kCopies)) != 0;
    if ((first & kLayer) != 0) return (all & kCopies) != 0 && (all & kReads) != 0;
    if (repeat.period > kLongestPlainBody && !reads_or_copies) return false;
    if ((all & (kPicks | kReads)) != 0) return true;
    if ((all & kCopies) != 0 && (all & kMatmul) != 0) return false;  // casts of a layer
    return function_of(tokens, repeat) != kNoRow && (all & kMatmul) == 0;
  }

  bool in_optimizer(Row row) const {
    const HostSlices& host = model_.host_slices;
    for (Row outer = host.parent[row]; outer != kNoRow; outer = host.parent[outer]) {
      if (model_.text(host.name[outer]).starts_with("Optimizer.")) return true;
    }
    return false;
  }

  // The Python function that calls the body's first op in the first and in the last round: the same call of it.
  Row function_of(std::span<const Token> tokens, const Repeat& repeat) const {
    const auto function = [&](size_t at) {
      const HostSlices& host = model_.host_slices;
      Row row = host.parent[tokens[at].row];
      while (row != kNoRow && host.kind[row] != HostKind::kPython) row = host.parent[row];
      return row;
    };
    const Row first = function(repeat.first);
    return first == function(repeat.first + repeat.period * (repeat.rounds - 1)) ? first : kNoRow;
  }

  Loop loop_of(std::span<const Token> tokens, const Repeat& repeat) const {
    const HostSlices& host = model_.host_slices;
    const Token& first = tokens[repeat.first];
    Loop loop{.lane = host.lane[first.row], .rounds = static_cast<int64_t>(repeat.rounds)};
    uint8_t traits = 0;
    for (size_t i = 0; i < repeat.period; ++i) {
      loop.body.push_back(tokens[repeat.first + i].row);
      traits |= tokens[repeat.first + i].traits;
    }
    loop.start_ns = host.start_ns[first.row];
    loop.second_start_ns = host.start_ns[tokens[repeat.first + repeat.period].row];
    loop.end_ns = host.end_ns(tokens[repeat.first + repeat.period * repeat.rounds - 1].row);
    loop.reads = (traits & kReads) != 0;
    loop.backward = (traits & kAutograd) != 0;
    loop.python = function_of(tokens, repeat);
    return loop;
  }

  const Model& model_;
  const HostChain& chain_;
  std::vector<uint8_t> traits_;  // by name
};

}  // namespace

std::vector<Loop> loops(const StudiedTrace& trace) {
  const auto& s = trace.get<study>();
  if (s.host->chains.empty()) return {};
  return find_loops(trace.model(), s.host->chains[0], s.steps);
}

std::vector<Loop> find_loops(const Model& model, const HostChain& chain, const StepList& steps) {
  return LoopFinder(model, chain).of(steps);
}

}  // namespace firelane::analyze

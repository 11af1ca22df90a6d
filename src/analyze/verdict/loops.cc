#include "analyze/verdict/loops.h"

#include <algorithm>
#include <cstdlib>
#include <span>

#include "analyze/host/cpu_ops.h"
#include "analyze/verdict/loop_rounds.h"
#include "analyze/verdict/repeats.h"
#include "analyze/verdict/study.h"

namespace firelane::analyze {

namespace {

class LoopFinder {
 public:
  LoopFinder(const Model& model, const HostChain& chain) : model_(model), chain_(chain), rounds_(model) {}

  std::vector<Loop> of(const StepList& steps) {
    has_steps_ = steps.source != StepSource::kWholeTrace;
    std::vector<std::vector<Token>> lanes;
    for (const LaneId lane : chain_.lanes) lanes.push_back(rounds_.tokens_of(lane));
    std::vector<Loop> all;
    for (const FoundStep& step : steps.steps) {
      if (step.warm_up) continue;
      std::vector<std::span<const Token>> parts;
      std::vector<std::vector<Repeat>> repeats;
      rounds_.begin_step();
      for (const auto& tokens : lanes) {
        parts.push_back(in_step(tokens, step));
        repeats.push_back(even_repeats(names_of(parts.back())));
        for (const Repeat& repeat : repeats.back()) rounds_.see(parts.back(), repeat);
      }
      std::vector<Loop> found;
      for (size_t i = 0; i < parts.size(); ++i) {
        for (const Repeat& repeat : chosen(parts[i], repeats[i])) found.push_back(loop_of(parts[i], repeat));
      }
      keep_backward_of_loops(found);
      for (const auto& part : parts) add_backward_parts(part, found);
      std::sort(found.begin(), found.end(), [](const Loop& a, const Loop& b) { return a.start_ns < b.start_ns; });
      for (Loop& loop : found) all.push_back(std::move(loop));
    }
    return all;
  }

 private:
  std::span<const Token> in_step(const std::vector<Token>& tokens, const FoundStep& step) const {
    const auto from = [&](int64_t time_ns) {
      return std::partition_point(tokens.begin(), tokens.end(),
                                  [&](const Token& token) { return model_.host_slices.start_ns[token.row] < time_ns; });
    };
    return {from(step.start_ns), from(step.end_ns)};
  }

  static std::vector<StringId> names_of(std::span<const Token> tokens) {
    std::vector<StringId> names;
    names.reserve(tokens.size());
    for (const Token& token : tokens) names.push_back(token.name);
    return names;
  }

  // Repeats that are loops and do not overlap, those first that come first.
  std::vector<Repeat> chosen(std::span<const Token> tokens, const std::vector<Repeat>& even) const {
    std::vector<Repeat> out;
    std::vector<bool> taken(tokens.size(), false);
    const auto mark = [&](const Repeat& repeat, bool value) {
      std::fill(taken.begin() + static_cast<std::ptrdiff_t>(repeat.first()),
                taken.begin() + static_cast<std::ptrdiff_t>(repeat.end()), value);
    };
    for (const Repeat& repeat : even) {
      if (taken[repeat.first()] || taken[repeat.end() - 1] || taken[(repeat.first() + repeat.end()) / 2]) continue;
      if (!rounds_.is_loop(tokens, repeat)) continue;
      mark(repeat, true);
      out.push_back(repeat);
    }
    // Without steps, rounds that differ are most often the program's own iterations.
    if (!has_steps_) return out;
    for (const Repeat& repeat : uneven_repeats(names_of(tokens))) {
      const auto covered = std::count(taken.begin() + static_cast<std::ptrdiff_t>(repeat.first()),
                                      taken.begin() + static_cast<std::ptrdiff_t>(repeat.end()), true);
      if (2 * static_cast<size_t>(covered) >= repeat.covers() || !rounds_.is_uneven_loop(tokens, repeat)) continue;
      // What it takes in are parts of it that happen to be alike.
      const auto is_inside = [&](const Repeat& other) {
        return other.first() < repeat.end() && repeat.first() < other.end();
      };
      for (const Repeat& other : out) {
        if (is_inside(other)) mark(other, false);
      }
      std::erase_if(out, is_inside);
      mark(repeat, true);
      out.push_back(repeat);
    }
    return out;
  }

  // The backward pass of a loop runs as many rounds.
  static void keep_backward_of_loops(std::vector<Loop>& found) {
    std::erase_if(found, [&](const Loop& loop) {
      return loop.backward && std::none_of(found.begin(), found.end(), [&](const Loop& other) {
               return !other.backward && std::abs(other.rounds - loop.rounds) <= 2;
             });
    });
  }

  int64_t number_of(Row op) const {
    const Row detail = model_.op_detail(op);
    const int64_t number = detail == kNoRow ? kNoNumber : model_.op_details.sequence_number[detail];
    return number == kNoNumber ? -1 : number;
  }

  // Nodes of the graph that operators of later rounds made, by their numbers, whether or not they repeat themselves:
  // a recurrent layer's backward pass is a loop of its own.
  void add_backward_parts(std::span<const Token> tokens, std::vector<Loop>& found) const {
    const HostSlices& host = model_.host_slices;
    struct Numbers {
      int64_t low = 0;
      int64_t high = 0;
      const Loop* loop = nullptr;
    };
    std::vector<Loop> added;
    std::vector<Numbers> of_loops;
    for (const Loop& loop : found) {
      if (loop.backward || loop.passes) continue;
      Numbers numbers{.low = INT64_MAX, .high = -1, .loop = &loop};
      const auto lane = static_cast<size_t>(loop.lane);
      const auto begin = host.start_ns.begin();
      const auto from = std::lower_bound(begin + model_.lanes.host_begin[lane], begin + model_.lanes.host_end[lane],
                                         loop.second_start_ns);
      for (auto row = static_cast<Row>(from - begin);
           row < model_.lanes.host_end[lane] && host.start_ns[row] < loop.end_ns; ++row) {
        if (host.kind[row] != HostKind::kOp) continue;
        const int64_t number = number_of(row);
        if (number < 0) continue;
        numbers.low = std::min(numbers.low, number);
        numbers.high = std::max(numbers.high, number);
      }
      // Without a graph all operators have the same number: that of the next node.
      if (numbers.high > numbers.low) of_loops.push_back(numbers);
    }
    std::sort(of_loops.begin(), of_loops.end(), [](const Numbers& a, const Numbers& b) { return a.low < b.low; });
    const auto loop_of_number = [&](int64_t number) -> const Loop* {
      const auto after = std::partition_point(of_loops.begin(), of_loops.end(),
                                              [&](const Numbers& each) { return each.low <= number; });
      return after != of_loops.begin() && number < std::prev(after)->high ? std::prev(after)->loop : nullptr;
    };
    std::vector<Interval> known;  // parts that were found by repeating themselves
    for (const Loop& loop : found) {
      if (loop.backward) known.push_back({loop.start_ns, loop.end_ns});
    }
    const IntervalSet repeated(known);
    const Loop* open = nullptr;
    for (const Token& token : tokens) {
      const Loop* of = nullptr;
      if ((token.traits & kAutograd) != 0) {
        const int64_t number = number_of(token.row);
        of = number < 0 ? open : loop_of_number(number);
      }
      const bool inside =
          of != nullptr && repeated.covered_ns(host.start_ns[token.row], host.start_ns[token.row] + 1) > 0;
      if (of == nullptr || inside) {
        open = nullptr;
        continue;
      }
      if (of != open) {
        added.push_back({.lane = host.lane[token.row],
                         .body = {token.row},
                         .rounds = of->rounds,
                         .start_ns = host.start_ns[token.row],
                         .second_start_ns = host.start_ns[token.row],
                         .backward = true});
      }
      added.back().end_ns = host.end_ns(token.row);
      open = of;
    }
    for (Loop& loop : added) found.push_back(std::move(loop));
  }

  // Where views begin that stand in a row right before the op, if they are at least `rounds`; else kNoNumber. What is
  // gone through was gathered there, by a state_dict() for example.
  int64_t gathering_start_ns(Row op, int64_t rounds) const {
    constexpr int64_t kLongestPauseNs = 100'000;
    const HostSlices& host = model_.host_slices;
    const Row lane_begin = model_.lanes.host_begin[static_cast<size_t>(host.lane[op])];
    int64_t views = 0;
    int64_t start_ns = host.start_ns[op];
    for (Row row = op; row > lane_begin; --row) {
      const Row before = row - 1;
      if (host.kind[before] != HostKind::kOp) continue;
      if (host.parent[before] != kNoRow && host.kind[host.parent[before]] == HostKind::kOp) continue;
      if (!is_view_op(model_.text(host.name[before]))) break;
      if (start_ns - host.end_ns(before) > kLongestPauseNs) break;
      start_ns = host.start_ns[before];
      ++views;
    }
    return views >= rounds ? start_ns : kNoNumber;
  }

  Loop loop_of(std::span<const Token> tokens, const Repeat& repeat) const {
    const HostSlices& host = model_.host_slices;
    const Token& first = tokens[repeat.first()];
    Loop loop{.lane = host.lane[first.row], .rounds = static_cast<int64_t>(repeat.rounds()), .even = repeat.even};
    uint16_t traits = 0;
    uint16_t common = kAutograd;
    for (size_t i = repeat.first(); i < repeat.starts[1]; ++i) {
      loop.body.push_back(tokens[i].row);
      traits |= tokens[i].traits;
      common &= tokens[i].traits;
    }
    loop.start_ns = host.start_ns[first.row];
    loop.second_start_ns = host.start_ns[tokens[repeat.starts[1]].row];
    loop.end_ns = host.end_ns(tokens[repeat.end() - 1].row);
    loop.reads = (traits & kReads) != 0;
    loop.backward = common != 0;
    loop.passes = !loop.backward && rounds_.goes_back(tokens, repeat);
    loop.python = rounds_.function_of(tokens, repeat);
    if (!loop.backward) loop.gathering_start_ns = gathering_start_ns(first.row, loop.rounds);
    const RoundData data = loop.backward ? RoundData::kUnknown : rounds_.data_of(tokens, repeat);
    loop.chained = data == RoundData::kChained;
    loop.items = data == RoundData::kItems;
    loop.same = data == RoundData::kSame;
    return loop;
  }

  const Model& model_;
  const HostChain& chain_;
  Rounds rounds_;
  bool has_steps_ = true;
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

#include "advise/gradient_flow.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "advise/host_evidence.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/ops/tensor_flow.h"

namespace firelane::advise {

namespace {

// Operators that look at gradients for the sake of others, or throw them away: norms, clipping, checks, zeroing. A
// gradient that only these touch is not used.
bool only_looks(std::string_view name) {
  for (const std::string_view part :
       {"norm", "mul_", "unscale", "isnan", "isinf", "isfinite", "zero_", "detach", "item", "_local_scalar_dense"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

enum class Use : uint8_t { kYes, kNo, kOpen };

// A gradient that a node hands to a parameter.
struct Handed {
  Row row = kNoRow;   // of the op in the node that does it
  Row node = kNoRow;  // outermost
  analyze::Dims shape;
  uint64_t storage = 0;
  bool is_kept = true;  // else a copy of it
  Use use = Use::kYes;
};

class Follower {
 public:
  Follower(const Context& context, const analyze::Phases& phases)
      : context_(context), phases_(phases), model_(context.model), host_(context.model.host_slices), flow_(model_) {}

  std::optional<Gradients> run() {
    if (!flow_.is_known()) return {};
    read();
    if (handed_.empty() || updates_.empty()) return {};
    std::sort(handed_.begin(), handed_.end(),
              [&](const Handed& a, const Handed& b) { return host_.start_ns[a.row] < host_.start_ns[b.row]; });
    for (auto* times : {&reads_, &frees_, &allocations_}) {
      for (auto& [storage, all] : *times) std::sort(all.begin(), all.end());
    }
    std::sort(updates_.begin(), updates_.end());
    for (Handed& each : handed_) each.use = use_of(each);
    decide_open_ones();
    std::sort(others_.begin(), others_.end());
    return result();
  }

 private:
  using Times = std::unordered_map<uint64_t, std::vector<int64_t>>;  // by storage

  void read() {
    const StringId accumulates = model_.strings.find("torch::autograd::AccumulateGrad");
    for (Row row = 0; row < host_.size(); ++row) {
      if (host_.kind[row] != HostKind::kOp || !context_.in_window(host_.start_ns[row])) continue;
      const analyze::Phase phase = phases_.host[row];
      const bool updates = phase == analyze::Phase::kOptimizer;
      if (updates || (phase != analyze::Phase::kBackward && !only_looks(model_.text(host_.name[row])))) {
        for (const auto& input : flow_.inputs_of(row)) reads_[input.storage].push_back(host_.start_ns[row]);
      }
      if (updates) updates_.push_back(host_.start_ns[row]);
      if (phase != analyze::Phase::kBackward && is_outermost_op(host_, row)) others_.push_back(host_.start_ns[row]);
      const Row parent = host_.parent[row];
      const bool is_child = parent != kNoRow && accumulates != kNoString && host_.name[parent] == accumulates;
      if (is_child && (handed_.empty() || host_.parent[handed_.back().row] != parent)) add(row);
    }
    const MemoryEvents& memory = model_.memory_events;
    for (size_t i = 0; i < memory.size(); ++i) {
      if (memory.kind[i] == MemoryEventKind::kFree) frees_[memory.address[i]].push_back(memory.time_ns[i]);
      if (memory.kind[i] == MemoryEventKind::kAlloc) allocations_[memory.address[i]].push_back(memory.time_ns[i]);
    }
  }

  // A first gradient is kept as it is (detach), further ones are added to it in place: both name it first. Of others a
  // copy is kept, which no operator names here: those may be used.
  void add(Row row) {
    const std::string_view name = model_.text(host_.name[row]);
    const bool is_kept = name == "aten::detach" || name == "aten::add_";
    const std::vector<analyze::TensorFlow::Input> inputs = flow_.inputs_of(row);
    const std::vector<analyze::Dims> dims = analyze::parse_input_dims(input_dims_text(model_, row));
    if (inputs.empty() || dims.empty()) return;
    handed_.push_back({.row = row,
                       .node = outermost_op(model_, row),
                       .shape = dims[0],
                       .storage = inputs[0].storage,
                       .is_kept = is_kept});
  }

  // The first moment after `time_ns` in the list; INT64_MAX: none.
  static int64_t next(const Times& times, uint64_t storage, int64_t time_ns) {
    const auto found = times.find(storage);
    if (found == times.end()) return INT64_MAX;
    const auto after = std::upper_bound(found->second.begin(), found->second.end(), time_ns);
    return after == found->second.end() ? INT64_MAX : *after;
  }

  // The last moment before `time_ns` in the list; INT64_MIN: none.
  static int64_t last(const Times& times, uint64_t storage, int64_t time_ns) {
    const auto found = times.find(storage);
    if (found == times.end()) return INT64_MIN;
    const auto after = std::lower_bound(found->second.begin(), found->second.end(), time_ns);
    return after == found->second.begin() ? INT64_MIN : *std::prev(after);
  }

  // One that is not given back may be read later, outside of the recording; unless nobody has read it while it was
  // there and optimizers had a whole step to do so.
  Use use_of(const Handed& each) const {
    if (!each.is_kept) return Use::kYes;
    const int64_t now = host_.start_ns[each.row];
    const int64_t freed = next(frees_, each.storage, now);
    if (next(reads_, each.storage, now) < freed) return Use::kYes;
    if (freed != INT64_MAX) return Use::kNo;
    const int64_t made = last(allocations_, each.storage, now);
    if (last(reads_, each.storage, now) > made) return Use::kOpen;
    const analyze::Interval& window = context_.window;
    const int64_t step_ns = (window.end_ns - window.start_ns) / std::max<int64_t>(1, context_.step_count);
    const int64_t since = std::max(made, window.start_ns);
    const auto update = std::lower_bound(updates_.begin(), updates_.end(), since + step_ns);
    return update == updates_.end() ? Use::kOpen : Use::kNo;
  }

  // As the one at the same place of the step before, if that has as many.
  void decide_open_ones() {
    const std::vector<analyze::Interval> steps = steps_of(context_);
    std::vector<Handed*> before;
    auto each = handed_.begin();
    for (const analyze::Interval& step : steps) {
      std::vector<Handed*> here;
      for (; each != handed_.end() && host_.start_ns[each->row] < step.end_ns; ++each) here.push_back(&*each);
      for (size_t i = 0; i < here.size(); ++i) {
        if (here[i]->use != Use::kOpen) continue;
        here[i]->use = here.size() == before.size() ? before[i]->use : Use::kYes;
      }
      before = std::move(here);
    }
    for (Handed& left : handed_) {
      if (left.use == Use::kOpen) left.use = Use::kYes;
    }
  }

  // Backward passes are parted by ops outside of them.
  size_t pass_of(const Handed& each) const {
    return static_cast<size_t>(std::lower_bound(others_.begin(), others_.end(), host_.start_ns[each.row]) -
                               others_.begin());
  }

  Gradients result() {
    Gradients out;
    std::map<analyze::Dims, std::set<size_t>> used_in;  // passes
    std::map<analyze::Dims, std::set<size_t>> unused_in;
    size_t pass = SIZE_MAX;
    std::map<analyze::Dims, int64_t> last_used;  // in this pass
    for (const Handed& each : handed_) {
      const int64_t now = host_.start_ns[each.row];
      if (pass_of(each) != pass) {
        pass = pass_of(each);
        const int64_t begin = pass == 0 ? INT64_MIN : others_[pass - 1];
        out.passes.push_back({begin, pass < others_.size() ? others_[pass] : INT64_MAX});
        last_used.clear();
      }
      if (each.use == Use::kYes) {
        out.used.push_back(each.row);
        used_in[each.shape].insert(pass);
        last_used[each.shape] = now;
        continue;
      }
      ++out.count;
      unused_in[each.shape].insert(pass);
      out.nodes.push_back(each.node);
      const auto known = last_used.find(each.shape);
      const int64_t from = known == last_used.end() ? out.passes.back().start_ns : known->second;
      std::vector<analyze::Interval>& when = out.too_many[each.shape];
      if (!when.empty() && when.back().end_ns >= from) {
        when.back().end_ns = now;
      } else {
        when.push_back({from, now});
      }
    }
    out.count /= std::max<int64_t>(1, context_.step_count);
    // A shape that is used in the same pass as well is another parameter's: it tells nothing.
    const auto uses_of = [&](const auto& unused) {
      const auto used = used_in.find(unused.first);
      return used == used_in.end() ? nullptr : &used->second;
    };
    out.thrown_away = std::all_of(unused_in.begin(), unused_in.end(), uses_of) &&
                      std::any_of(unused_in.begin(), unused_in.end(), [&](const auto& unused) {
                        return std::none_of(unused.second.begin(), unused.second.end(),
                                            [&](size_t in) { return uses_of(unused)->contains(in); });
                      });
    return out;
  }

  const Context& context_;
  const analyze::Phases& phases_;
  const Model& model_;
  const HostSlices& host_;
  analyze::TensorFlow flow_;
  std::vector<Handed> handed_;
  Times reads_;  // by optimizers, and by whatever else computes with them
  Times frees_;
  Times allocations_;
  std::vector<int64_t> updates_;  // ops of optimizers
  std::vector<int64_t> others_;   // starts of outermost ops that are no part of a backward pass
};

}  // namespace

std::optional<Gradients> followed_gradients(const Context& context, const analyze::Phases& phases) {
  return Follower(context, phases).run();
}

}  // namespace firelane::advise

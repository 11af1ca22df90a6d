#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <unordered_map>

#include "ranks/reduce/stragglers.h"

namespace firelane::ranks {

namespace {

struct PerStep {
  double compute = 0, kernels = 0, work = 0, copy = 0, input = 0, gc = 0, allocation = 0, sync = 0, host = 0,
         checkpoint = 0;
};

PerStep per_step(const RankRows& rank) {
  PerStep out;
  double steps = 0;
  for (size_t s = 0; s < rank.step_causes.size(); ++s) {
    const bool outside = s + 1 == rank.step_causes.size();
    if (outside ? rank.part.steps.size() > 0 : !is_judged(rank.part.steps, s)) continue;
    const Causes& c = rank.step_causes[s];
    ++steps;
    out.compute += static_cast<double>(c.compute_ns);
    out.kernels += static_cast<double>(c.kernels);
    out.work += static_cast<double>(c.work);
    out.copy += static_cast<double>(c.copy_ns);
    out.input += static_cast<double>(c.input_ns);
    out.gc += static_cast<double>(c.gc_ns);
    out.allocation += static_cast<double>(c.allocation_ns);
    out.sync += static_cast<double>(c.sync_ns);
    out.host += static_cast<double>(c.host_ns);
    out.checkpoint += static_cast<double>(c.checkpoint_ns);
  }
  for (double* each : {&out.compute, &out.kernels, &out.work, &out.copy, &out.input, &out.gc, &out.allocation,
                       &out.sync, &out.host, &out.checkpoint}) {
    *each /= std::max(1.0, steps);
  }
  return out;
}

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::string in_ms(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, ns < 1e6 ? "%.2f ms" : "%.1f ms", ns / 1e6);
  return text;
}

std::string more_percent(double now, double usual) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f%%", usual <= 0 ? 0.0 : 100 * (now / usual - 1));
  return text;
}

// The kernel that adds the most to the time of this rank, and how much slower a call of it is.
std::string worst_kernel(const Intake& intake, uint32_t rank, const std::vector<uint32_t>& peers, std::string& name) {
  std::unordered_map<std::string, std::vector<double>> usual;  // ns a call
  for (const uint32_t peer : peers) {
    if (peer == rank) continue;
    for (const PartKernel& kernel : intake.ranks[peer].part.kernels) {
      if (kernel.calls > 0)
        usual[kernel.name].push_back(static_cast<double>(kernel.total_ns) / static_cast<double>(kernel.calls));
    }
  }
  double most = 0;
  std::string out;
  for (const PartKernel& kernel : intake.ranks[rank].part.kernels) {
    const auto known = usual.find(kernel.name);
    if (known == usual.end() || kernel.calls == 0) continue;
    const double each = middle(known->second);
    const double now = static_cast<double>(kernel.total_ns) / static_cast<double>(kernel.calls);
    const double added = (now - each) * static_cast<double>(kernel.calls);
    if (added <= most) continue;
    most = added;
    name = kernel.name;
    out = more_percent(now, each) + " slower a call";
  }
  return out;
}

// An operator as one rank runs it: of the kernel on which it spends the most, the inputs of the largest call.
struct OpUse {
  double total_ns = 0;
  double longest_ns = -1;
  std::string shapes;
};

std::map<std::string, OpUse> uses_of(const Part& part) {
  std::map<std::string, OpUse> out;
  for (const PartKernel& kernel : part.kernels) {
    OpUse& use = out[kernel.op.empty() ? kernel.name : kernel.op];
    const auto total = static_cast<double>(kernel.total_ns);
    use.total_ns += total;
    if (total <= use.longest_ns || kernel.shapes.empty()) continue;
    use.longest_ns = total;
    use.shapes = kernel.shapes;
  }
  return out;
}

// Of the operators with other inputs than on the other ranks, the one that adds the most: "aten::mm of [[8, 64]]
// instead of [[4, 64]]". "" where no shapes were recorded, or all are the same.
std::string other_shapes(const Intake& intake, uint32_t rank, const std::vector<uint32_t>& peers) {
  constexpr size_t kMostPeers = 32;  // that are looked at
  std::unordered_map<std::string, std::vector<OpUse>> usual;
  size_t looked_at = 0;
  for (const uint32_t peer : peers) {
    if (peer == rank || looked_at++ >= kMostPeers) continue;
    for (auto& [op, use] : uses_of(intake.ranks[peer].part)) usual[op].push_back(std::move(use));
  }
  double most = 0;
  std::string out;
  for (const auto& [op, use] : uses_of(intake.ranks[rank].part)) {
    const auto known = usual.find(op);
    if (use.shapes.empty() || known == usual.end()) continue;
    std::vector<double> totals;
    std::map<std::string, size_t> shapes;
    for (const OpUse& each : known->second) {
      totals.push_back(each.total_ns);
      if (!each.shapes.empty()) ++shapes[each.shapes];
    }
    const double added = use.total_ns - middle(std::move(totals));
    if (added <= most || shapes.empty() || shapes.contains(use.shapes)) continue;
    most = added;
    const auto commonest = std::ranges::max_element(shapes, {}, [](const auto& each) { return each.second; });
    out = op + " of " + use.shapes + " instead of " + commonest->first;
  }
  return out;
}

// Clocks, power and temperature of its device beside those of the others, where both were recorded.
std::string device_state_words(const Intake& intake, uint32_t rank, const std::vector<uint32_t>& peers) {
  const PartDeviceState& own = intake.ranks[rank].part.device_state;
  const auto usual = [&](int64_t PartDeviceState::* field) {
    std::vector<double> values;
    for (const uint32_t peer : peers) {
      const int64_t value = intake.ranks[peer].part.device_state.*field;
      if (peer != rank && value >= 0) values.push_back(static_cast<double>(value));
    }
    return values.empty() ? int64_t{-1} : std::llround(middle(std::move(values)));
  };
  const int64_t clock = usual(&PartDeviceState::sm_clock_mhz);
  if (own.sm_clock_mhz < 0 || clock < 0) return "";
  const auto also = [&](int64_t PartDeviceState::* field, const char* unit) {
    const int64_t others = usual(field);
    if (own.*field < 0) return std::string();
    return ", " + std::to_string(own.*field) + unit +
           (others < 0 ? "" : " (others " + std::to_string(others) + unit + ")");
  };
  constexpr double kLower = 0.97;
  const bool is_low = static_cast<double>(own.sm_clock_mhz) < kLower * static_cast<double>(clock);
  return "its GPU ran at " + std::to_string(own.sm_clock_mhz) + " MHz" +
         (is_low ? ", the others at " + std::to_string(clock) + " MHz" : ", as the others did") +
         also(&PartDeviceState::power_watts, " W") + also(&PartDeviceState::temperature_celsius, " C");
}

}  // namespace

CauseFound find_cause(const Intake& intake, uint32_t rank, const std::vector<uint32_t>& peers) {
  const PerStep own = per_step(intake.ranks[rank]);
  std::vector<PerStep> others;
  for (const uint32_t peer : peers) {
    if (peer != rank) others.push_back(per_step(intake.ranks[peer]));
  }
  const auto usual = [&](double PerStep::* field) {
    std::vector<double> values;
    for (const PerStep& each : others) values.push_back(each.*field);
    return middle(std::move(values));
  };
  struct Part {
    Cause cause;
    double PerStep::* field;
  };
  constexpr Part kParts[] = {{Cause::kSlowerKernels, &PerStep::compute},
                             {Cause::kInput, &PerStep::input},
                             {Cause::kGc, &PerStep::gc},
                             {Cause::kAllocation, &PerStep::allocation},
                             {Cause::kSync, &PerStep::sync},
                             {Cause::kHost, &PerStep::host},
                             {Cause::kCopies, &PerStep::copy},
                             {Cause::kCheckpoint, &PerStep::checkpoint}};
  const Part* worst = &kParts[0];
  const auto excess = [&](const Part& part) { return own.*part.field - usual(part.field); };
  for (const Part& part : kParts) {
    if (excess(part) > excess(*worst)) worst = &part;
  }
  CauseFound out;
  if (others.empty() || excess(*worst) <= 0) return out;
  out.cause = worst->cause;
  const bool on_device = intake.ranks[rank].part.has_device_work;
  const std::string numbers = in_ms(own.*worst->field) + " a step instead of " + in_ms(usual(worst->field));
  switch (worst->cause) {
    case Cause::kSlowerKernels: {
      const double time_more = own.compute / std::max(1.0, usual(&PerStep::compute)) - 1;
      const double work_usual = usual(&PerStep::work);
      const double work_more = work_usual > 0 ? own.work / work_usual - 1 : 0;
      const double kernels_usual = usual(&PerStep::kernels);
      const double kernels_more = kernels_usual > 0 ? own.kernels / kernels_usual - 1 : 0;
      if (std::max(work_more, kernels_more) >= 0.4 * time_more) {
        out.cause = Cause::kMoreWork;
        out.why = "it has more work: " + numbers + " of computing, for " + more_percent(own.work, work_usual) +
                  (on_device ? " more GPU threads" : " more elements") + " in " +
                  more_percent(own.kernels, kernels_usual) + (on_device ? " more kernels" : " more operators");
        const std::string shapes = other_shapes(intake, rank, peers);
        if (!shapes.empty()) out.why += "; most in " + shapes;
      } else {
        const std::string kernel = worst_kernel(intake, rank, peers, out.kernel);
        out.why = std::string("the same ") + (on_device ? "kernels" : "operators") + " are slower: " + numbers +
                  (kernel.empty() ? "" : "; most in " + out.kernel.substr(0, 60) + ", " + kernel);
        const std::string state = device_state_words(intake, rank, peers);
        if (!state.empty()) out.why += "; " + state;
      }
      break;
    }
    case Cause::kInput: out.why = "it waits for its input: " + numbers + " in the DataLoader"; break;
    case Cause::kGc: out.why = "Python's garbage collector: " + numbers; break;
    case Cause::kAllocation: out.why = "cudaMalloc and cudaFree: " + numbers; break;
    case Cause::kSync: out.why = "calls that wait for the device: " + numbers + " with the device idle"; break;
    case Cause::kHost:
      out.why = "its host is late: " + numbers + (on_device ? " with the device idle" : " outside of operators");
      break;
    case Cause::kCopies: out.why = "copies: " + numbers; break;
    case Cause::kCheckpoint: out.why = "it writes checkpoints: " + numbers + " in torch.save() and the like"; break;
    default: break;
  }
  return out;
}

}  // namespace firelane::ranks

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unordered_map>

#include "ranks/reduce/stragglers.h"

namespace firelane::ranks {

namespace {

struct PerStep {
  double compute = 0, kernels = 0, work = 0, copy = 0, input = 0, gc = 0, allocation = 0, sync = 0, host = 0;
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
  }
  for (double* each :
       {&out.compute, &out.kernels, &out.work, &out.copy, &out.input, &out.gc, &out.allocation, &out.sync, &out.host}) {
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
                             {Cause::kCopies, &PerStep::copy}};
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
      } else {
        const std::string kernel = worst_kernel(intake, rank, peers, out.kernel);
        out.why = std::string("the same ") + (on_device ? "kernels" : "operators") + " are slower: " + numbers +
                  (kernel.empty() ? "" : "; most in " + out.kernel.substr(0, 60) + ", " + kernel);
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
    default: break;
  }
  return out;
}

}  // namespace firelane::ranks

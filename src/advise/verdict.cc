#include "advise/verdict.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "advise/text.h"

namespace firelane::advise {

namespace {

using analyze::Limit;

std::string label_text(Limit limit) { return std::string(analyze::label_of(limit)); }

// What a side of the critical path is called beside its share.
std::string_view side_name(Limit limit, bool has_device_work) {
  if (limit == Limit::kOverhead) return has_device_work ? "launch overhead" : "Python and dispatch overhead";
  if (limit == Limit::kMemory) return "memory bandwidth";
  return analyze::name_of(limit);
}

// "launch overhead 55%, memory bandwidth 22%": the two largest.
std::string largest_shares(const analyze::Study& study) {
  std::vector<std::pair<double, Limit>> sides;
  for (size_t i = 0; i < analyze::kLimitCount; ++i) {
    sides.emplace_back(study.bound.shares[i], static_cast<Limit>(i));
  }
  std::stable_sort(sides.begin(), sides.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto text = [&](const std::pair<double, Limit>& side) {
    return std::string(side_name(side.second, study.has_device_work)) + " " + short_percent(side.first);
  };
  return text(sides[0]) + ", " + text(sides[1]);
}

// "DRAM at 84% and tensor cores at 3% of their peak": the unit that decides stands first.
std::string measured_text(const analyze::UnitUse& use, Limit limit) {
  using analyze::HardwareUnit;
  struct Named {
    HardwareUnit unit;
    std::string_view name;
  };
  const Named dram{HardwareUnit::kDram, "DRAM"};
  const Named tensor{HardwareUnit::kTensor, "tensor cores"};
  const Named sm{HardwareUnit::kSm, "SMs"};
  const std::vector<Named> order =
      limit == Limit::kMemory ? std::vector{dram, tensor, sm} : std::vector{tensor, dram, sm};
  std::string text;
  bool is_one = false;
  for (const Named& each : order) {
    if (use.of(each.unit) < 0) continue;
    is_one = text.empty() && each.unit == HardwareUnit::kDram;
    text += (text.empty() ? "" : ", ") + std::string(each.name) + " at " + short_percent(use.of(each.unit) / 100);
  }
  return text.empty() ? "" : text + (is_one ? " of its peak" : " of their peak");
}

// Counters say whether memory is what limits; shapes and names of kernels only suggest it.
void say_measured(const analyze::Study& study, Verdict& out) {
  const Limit limit = study.bound.limit;
  const std::string text = measured_text(study.unit_use, limit);
  if (text.empty()) return;
  const double dram = study.unit_use.of(analyze::HardwareUnit::kDram);
  const double tensor = study.unit_use.of(analyze::HardwareUnit::kTensor);
  const bool is_proven = limit == Limit::kMemory ? dram >= analyze::kUsedUpPercent : tensor >= analyze::kUsedUpPercent;
  if ((limit == Limit::kMemory || limit == Limit::kCompute) && is_proven) {
    out.reason += ", measured: " + text;
  } else {
    out.step += (out.step.empty() ? "" : "; ") + std::string("measured while it is busy: ") + text;
  }
}

constexpr double kMostlyBusy = 0.75;

// Copies are the largest part of what keeps the device busy.
bool is_copying(const analyze::Study& study) {
  return study.has_device_work && 2 * study.breakdown.total.copy_ns > study.breakdown.total.busy_ns();
}

void say_limit(const analyze::Study& study, Verdict& out) {
  const Limit limit = study.bound.limit;
  if (study.cold) {
    out.label = "in between";
    out.reason = study.other_limit == Limit::kMixed
                     ? "the host limits these first steps; once warmed up, host and device take about equally long"
                     : label_text(limit) + " in these first steps, " + label_text(study.other_limit) +
                           " once the host has warmed up";
    return;
  }
  if (study.undone.undecided) {
    out.label = label_text(limit) + " or " + label_text(study.other_limit);
    out.reason = "recording slowed the program too much to tell which";
    return;
  }
  out.label = label_text(limit);
  out.reason = analyze::reason_for(limit, study.has_device_work);
  if (limit == Limit::kMemory && is_copying(study))
    out.reason = "the device is busy with copies that no kernel overlaps";
  if (limit == Limit::kUnknown && study.has_device_work && study.bound.device_busy >= kMostlyBusy) {
    out.reason = "the device is busy most of the time, and this trace does not show what limits its work";
  }
  if (limit != Limit::kMixed) return;
  // The host decides when a step ends, and the device is busy nearly all the time: neither has time to spare.
  const double host = study.bound.shares[static_cast<size_t>(Limit::kOverhead)];
  out.reason = host >= 0.5 && study.bound.device_busy >= 0.5 ? std::string("host and device take about equally long")
                                                             : out.reason + " (" + largest_shares(study) + ")";
}

// As a share of a step: exposed communication belongs in the first line, whatever limits the program.
constexpr double kSaidExposed = 0.05;
constexpr double kSaidCopies = 0.5;  // copies only where they are most of it: their rules say the rest

std::string step_text(const analyze::Study& study) {
  const int64_t step_ns = study.usual_step_ns;
  std::string text = "a step takes " + short_time(step_ns);
  const int64_t recorded_ns = study.usual_recorded_ns;
  if (recorded_ns - step_ns > recorded_ns / 50 && short_time(recorded_ns) != short_time(step_ns)) {
    text += " (" + short_time(recorded_ns) + " " + std::string(study.while_recording()) +
            (study.undone.within_noise ? ", which is as much as steps vary)" : ")");
  }
  // Slow steps: what findings save is measured against the average.
  if (study.mean_step_ns() > step_ns + step_ns / 10) text += ", " + short_time(study.mean_step_ns()) + " on average";
  if (study.has_device_work && step_ns > 0) {
    // Relative to the average step, as in the findings: slow steps count in the device's work, too.
    const auto mean_ns = static_cast<double>(std::max<int64_t>(1, study.mean_step_ns()));
    const double share = device_busy_share(study);
    text += ", the device is busy " + short_percent(share) + " of it";
    const auto say_exposed = [&](int64_t ns, double least, const char* what) {
      const double exposed = std::min(share, static_cast<double>(study.per_step(ns)) / mean_ns);
      if (exposed >= least) text += ", " + short_percent(exposed) + " with " + what + " alone";
    };
    say_exposed(study.breakdown.total.communication_ns, kSaidExposed, "communication");
    say_exposed(study.breakdown.total.copy_ns, kSaidCopies, "copies");
  }
  return text;
}

std::string meaning_of(const analyze::Study& study) {
  const Limit limit = study.bound.limit;
  const bool has_device_work = study.has_device_work;
  if (limit == Limit::kMemory && is_copying(study)) {
    return "Copies take the time: the GPU waits for its data rather than computing.";
  }
  switch (limit) {
    case Limit::kOverhead:
      return has_device_work
                 ? "The GPU is fast enough; the Python program that feeds it is not. A faster GPU would not help."
                 : "Calling operators takes longer than the work inside them: give each call more to do.";
    case Limit::kCompute:
      return has_device_work ? "GPU compute is the bottleneck, which is where a well-tuned program should be."
                             : "CPU compute is the bottleneck.";
    case Limit::kMemory:
      return "Bound by memory bandwidth: the " + std::string(has_device_work ? "GPU" : "CPU") +
             " spends its time moving data rather than computing.";
    case Limit::kInput:
      return "The model waits for data: loading and preparing batches is slower than training on them.";
    case Limit::kCommunication:
      return "The " + std::string(has_device_work ? "GPUs" : "processes") +
             " wait for each other: exchanging data takes longer than computing.";
    case Limit::kMixed:
    case Limit::kUnknown: return "";
  }
  return "";
}

}  // namespace

std::string Verdict::sentence() const { return headline() + (step.empty() ? "" : "; " + step); }

double device_busy_share(const analyze::Study& study) {
  const auto mean_ns = static_cast<double>(std::max<int64_t>(1, study.mean_step_ns()));
  const auto busy_ns = static_cast<double>(study.per_step(study.breakdown.total.busy_ns()));
  return study.has_device_work ? std::min(1.0, busy_ns / mean_ns) : 0;
}

Verdict no_verdict(std::string reason) {
  return {.bound = {.limit = Limit::kUnknown}, .label = "no verdict", .reason = std::move(reason)};
}

Verdict verdict_of(const analyze::Study& study) {
  Verdict out{.bound = study.bound, .step = step_text(study), .meaning = meaning_of(study)};
  say_limit(study, out);
  if (study.unit_use.is_known()) say_measured(study, out);
  return out;
}

}  // namespace firelane::advise

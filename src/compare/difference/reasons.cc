// Why a step changed, in sentences: the parts of the difference, put together where one cause moves several of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "advise/text.h"
#include "compare/difference/difference.h"

namespace firelane::compare {

namespace {

// Less than this share of the step, or of the difference, is not worth a sentence.
constexpr double kWorthSaying = 0.005;
constexpr double kWorthOfDifference = 0.02;

std::string signed_time(double ns) {
  const auto whole = static_cast<int64_t>(std::llround(std::abs(ns)));
  return (ns < 0 ? "-" : "+") + advise::short_time(whole);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 && value != std::floor(value) ? "%.1f" : "%.0f", value);
  return text;
}

std::string where(const std::string& module, const std::string& line) {
  std::string out;
  if (!module.empty()) out += " in " + module;
  if (!line.empty()) out += " at " + line;
  return out;
}

std::string short_kernel(const std::string& name) {
  constexpr size_t kMost = 48;
  const std::string words = name.substr(name.starts_with("void ") ? 5 : 0);
  return words.size() <= kMost ? words : words.substr(0, kMost - 3) + "...";
}

// "aten::mm runs in fp32 instead of bf16"
std::string say_work(const WorkChange& w) {
  const std::string name =
      w.op.empty() ? short_kernel(w.kernel_after.empty() ? w.kernel_before : w.kernel_after) : w.op;
  const std::string place = where(w.module, w.line);
  switch (w.change) {
    case Change::kPrecision:
      return name + " runs in " + w.precision_after + " instead of " + w.precision_before + place;
    case Change::kShapes: return name + " has other shapes: " + w.dims_after + " instead of " + w.dims_before + place;
    case Change::kAlgorithm:
      return name + " runs " + short_kernel(w.kernel_after) + " instead of " + short_kernel(w.kernel_before) + place;
    case Change::kNew:
      return name + " is new: " + number(w.calls_after) + " a step" +
             (w.kernel_after.empty() ? "" : " of " + short_kernel(w.kernel_after)) + place;
    case Change::kGone: return name + " is gone: " + number(w.calls_before) + " a step" + place;
    case Change::kNone: break;
  }
  if (std::abs(w.by_calls_ns) > std::abs(w.by_speed_ns)) {
    return name + " is called " + number(w.calls_after) + " times a step instead of " + number(w.calls_before) + place;
  }
  const double was = w.calls_before > 0 ? w.ns_before / w.calls_before : 0;
  const double is = w.calls_after > 0 ? w.ns_after / w.calls_after : 0;
  return name + " takes " + advise::short_time(std::llround(is)) + " a call instead of " +
         advise::short_time(std::llround(was)) + place;
}

class Reasons {
 public:
  Reasons(const Difference& d, const Run& before, const Run& after)
      : d_(d),
        before_(before),
        after_(after),
        floor_(std::max(kWorthSaying * d.step.before, kWorthOfDifference * std::abs(d.step.after - d.step.before))) {}

  std::vector<Reason> take() {
    if (!after_.has_device_work || !before_.has_device_work) {
      add_cpu_work();
    } else {
      add_host_together();
      for (const PartChange& part : d_.parts) {
        if (!is_kernels(part.part) && part.part != Part::kCopies && part.part != Part::kCommunication) continue;
        add_work(part);
      }
    }
    for (const PartChange& part : d_.parts) {
      if (part.part == Part::kInput || part.part == Part::kAllocating || part.part == Part::kGc ||
          part.part == Part::kLoading || part.part == Part::kUnknown) {
        add_part(part);
      }
    }
    const bool slower = d_.step.ratio >= 1;
    std::stable_sort(out_.begin(), out_.end(), [&](const Reason& a, const Reason& b) {
      const bool explains_a = (a.change_ns > 0) == slower;
      const bool explains_b = (b.change_ns > 0) == slower;
      if (explains_a != explains_b) return explains_a;
      return std::abs(a.change_ns) > std::abs(b.change_ns);
    });
    constexpr size_t kMostReasons = 8;
    if (out_.size() > kMostReasons) out_.resize(kMostReasons);
    add_memory();
    // No cause, but what keeps the sum of them from being the difference.
    for (const PartChange& part : d_.parts) {
      if (part.part == Part::kUneven) add_part(part);
    }
    return std::move(out_);
  }

 private:
  int64_t change_of(Part part) const {
    return after_.parts[static_cast<size_t>(part)] - before_.parts[static_cast<size_t>(part)];
  }
  bool is_worth(double ns) const { return std::abs(ns) >= floor_ && std::abs(ns) >= 1; }
  void say(const std::string& text, double ns) {
    out_.push_back({text + " (" + signed_time(ns) + ")", std::llround(ns)});
  }

  void add_part(const PartChange& part) {
    const auto change = static_cast<double>(part.change_ns());
    if (!is_worth(change)) return;
    std::string text(name_of(part.part));
    // The place with the largest share of it, if that is most of it.
    for (const PlaceChange& place : d_.places) {
      if (place.part != part.part || (place.op.empty() && place.line.empty())) continue;
      if ((place.after_ns - place.before_ns) / change < 0.4) continue;
      text += ", most in " + (place.op.empty() ? place.line : place.op + where("", place.line));
      break;
    }
    say(text, change);
  }

  // Host work, launches and latency move together: a synchronization exposes them all, more launches lengthen them all.
  void add_host_together() {
    constexpr Part kHostParts[] = {Part::kBetweenOps, Part::kOperators, Part::kLaunching,
                                   Part::kCalls,      Part::kWaiting,   Part::kLatency};
    double sum = 0;
    for (const Part part : kHostParts) sum += static_cast<double>(change_of(part));
    if (!is_worth(sum)) return;
    const double syncs = after_.syncs - before_.syncs;
    if (std::abs(syncs) >= 0.5 && (syncs > 0) == (sum > 0)) return say(say_syncs(syncs), sum);
    const double launches = after_.launches - before_.launches;
    if ((launches > 0) == (sum > 0) && std::abs(launches) >= 0.02 * before_.launches && std::abs(launches) >= 1) {
      return say(number(after_.launches) + " launches a step instead of " + number(before_.launches) + most_calls(sum),
                 sum);
    }
    for (const PartChange& part : d_.parts) {
      if (std::find(std::begin(kHostParts), std::end(kHostParts), part.part) != std::end(kHostParts)) add_part(part);
    }
  }

  std::string say_syncs(double change) const {
    std::string text = number(after_.syncs) +
                       (number(after_.syncs) == "1" ? " synchronizing call" : " synchronizing calls") +
                       " a step instead of " + number(before_.syncs);
    for (const SyncChange& sync : d_.syncs) {
      if ((sync.calls_after > sync.calls_before) != (change > 0)) continue;
      text += ": " + sync.reason;
      if (!sync.op.empty()) text += " (" + sync.op + ")";
      return text + where("", sync.line);
    }
    return text;
  }

  std::string most_calls(double sign) const {
    const WorkChange* most = nullptr;
    for (const WorkChange& work : d_.work) {
      const double change = (work.calls_after - work.calls_before) * (sign > 0 ? 1 : -1);
      if (change > 0 && (most == nullptr || change > (most->calls_after - most->calls_before) * (sign > 0 ? 1 : -1)))
        most = &work;
    }
    if (most == nullptr || most->op.empty()) return "";
    return ": " + most->op + " " + number(most->calls_before) + " to " + number(most->calls_after) + " times" +
           where(most->module, most->line);
  }

  // The largest change of work in that part says why; where many changed alike, all of them together.
  void add_work(const PartChange& part) {
    const auto change = static_cast<double>(part.change_ns());
    if (!is_worth(change)) return;
    const std::string name(name_of(part.part));
    // The same work, but another share of it decides how long a step takes.
    if ((device_time(after_, part.part) - device_time(before_, part.part)) / change < 0.3) {
      return say(name + (change > 0 ? " that the host no longer hides" : " that the host hides now"), change);
    }
    std::array<double, 6> by_change{};
    std::array<const WorkChange*, 6> largest{};
    for (const WorkChange& work : d_.work) {
      const double moved = (work.path_after - work.path_before) / change;
      if (work.part != part.part || moved <= 0) continue;
      const auto kind = static_cast<size_t>(work.change);
      by_change[kind] += moved;
      if (largest[kind] == nullptr) largest[kind] = &work;  // the largest come first
    }
    const auto most = static_cast<size_t>(std::max_element(by_change.begin(), by_change.end()) - by_change.begin());
    if (largest[most] == nullptr) return say(name, change);
    say(name + ": " + say_work(*largest[most]), change);
  }

  static double device_time(const Run& run, Part part) {
    double sum = 0;
    for (const WorkGroup& group : run.work) {
      if (group.part == part) sum += group.total_ns;
    }
    return sum;
  }

  // Without a device operators are the work, and what lies between them is Python.
  void add_cpu_work() {
    constexpr double kSmallOpNs = 20'000;
    const auto has_other_calls = [](const WorkChange& work) {
      return std::abs(work.calls_after - work.calls_before) > 0.1 * work.calls_before;
    };
    const double ops = after_.ops - before_.ops;
    double by_calls = static_cast<double>(change_of(Part::kBetweenOps));
    for (const WorkChange& work : d_.work) by_calls += has_other_calls(work) ? work.change_ns() : 0;
    const bool many_small_ops = std::abs(ops) >= 0.1 * before_.ops && std::abs(ops) >= 1 &&
                                (ops > 0) == (by_calls > 0) && std::abs(by_calls / ops) < kSmallOpNs &&
                                is_worth(by_calls);
    if (many_small_ops) {
      say(number(after_.ops) + " operators a step instead of " + number(before_.ops) + most_calls(by_calls), by_calls);
    }
    constexpr size_t kMost = 5;
    size_t said = 0;
    for (const WorkChange& work : d_.work) {
      if (said == kMost) break;
      if (!is_worth(work.change_ns()) || (many_small_ops && has_other_calls(work))) continue;
      say(say_work(work), work.change_ns());
      ++said;
    }
    for (const PartChange& part : d_.parts) {
      if (part.part == Part::kCalls || (part.part == Part::kBetweenOps && !many_small_ops)) add_part(part);
    }
  }

  void add_memory() {
    const double was = static_cast<double>(before_.peak_bytes);
    const double is = static_cast<double>(after_.peak_bytes);
    if (!before_.has_memory || !after_.has_memory || std::abs(is - was) < 0.03 * was) return;
    const MemoryChange* most = nullptr;
    for (const MemoryChange& change : d_.memory) {
      const int64_t moved = std::abs(change.after_bytes - change.before_bytes);
      if (most == nullptr || moved > std::abs(most->after_bytes - most->before_bytes)) most = &change;
    }
    std::string text = "peak memory " + advise::short_bytes(after_.peak_bytes) + " instead of " +
                       advise::short_bytes(before_.peak_bytes);
    if (most != nullptr) {
      text += ", most of it " + std::string(analyze::name_of(most->category)) + ": " +
              advise::short_bytes(most->after_bytes) + " instead of " + advise::short_bytes(most->before_bytes);
    }
    // A step that takes as long as before changed in nothing else.
    const bool first = std::abs(d_.step.ratio - 1) < 0.03;
    out_.insert(first ? out_.begin() : out_.end(), Reason{text, 0});
  }

  const Difference& d_;
  const Run& before_;
  const Run& after_;
  double floor_;
  std::vector<Reason> out_;
};

}  // namespace

std::vector<Reason> reasons_for(const Difference& difference, const Run& before, const Run& after) {
  return Reasons(difference, before, after).take();
}

}  // namespace firelane::compare

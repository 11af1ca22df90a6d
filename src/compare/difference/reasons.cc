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
// The device's own time has to explain this share of a change on the step's chain to be its cause.
constexpr double kExplained = 0.3;
// Without runs enough to tell noise, a step may differ by this much by chance: equal runs of launch-bound programs on
// an H200 vary by 5%.
constexpr double kMayBeNoise = 0.1;

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
    case Change::kShapes:
      return name + " has different shapes: " + w.dims_after + " instead of " + w.dims_before + place;
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
        if (is_work(part.part) && !is_uncovered(part)) add_work(part);
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

  // The host's own work; and what a device that is ahead of the host, or behind it, lays bare of both.
  static constexpr std::array<Part, 4> kHostWork = {Part::kBetweenOps, Part::kOperators, Part::kLaunching,
                                                    Part::kCalls};
  static constexpr std::array<Part, 2> kExposed = {Part::kWaiting, Part::kLatency};

  template <typename Parts>
  double sum_of(const Parts& parts) const {
    double sum = 0;
    for (const Part part : parts) sum += static_cast<double>(change_of(part));
    return sum;
  }

  // Host work, launches and latency move together: a synchronization exposes them all, more launches lengthen them all.
  // So does work of the device that the host hides, or no longer does, though it takes as long as before: where both
  // are about as fast, a little decides which of them the step waits for.
  void add_host_together() {
    double exposed = sum_of(kExposed);
    double uncovered = 0;
    for (const PartChange& part : d_.parts) {
      if (is_uncovered(part)) uncovered += static_cast<double>(part.change_ns()) - add_other_work(part);
    }
    exposed += uncovered;
    const double host = sum_of(kHostWork);
    const double sum = host + exposed;
    const double syncs = after_.syncs - before_.syncs;
    if (std::abs(syncs) >= 0.5 && is_worth(sum) && (syncs > 0) == (sum > 0)) return say(say_syncs(syncs), sum);
    const bool by_syncs = std::abs(syncs) >= 0.5 && is_worth(exposed) && (syncs > 0) == (exposed > 0);
    if (by_syncs) say(say_syncs(syncs), exposed);
    const double left = by_syncs ? host : sum;
    if (!is_worth(left)) return;
    const double launches = after_.launches - before_.launches;
    if ((launches > 0) == (left > 0) && std::abs(launches) >= 0.02 * before_.launches && std::abs(launches) >= 1) {
      return say(number(after_.launches) + " launches a step instead of " + number(before_.launches) + most_calls(left),
                 left);
    }
    if (!by_syncs && std::abs(uncovered) >= floor_) return say_balance(left);
    for (const PartChange& part : d_.parts) {
      const auto is_in = [&](const auto& parts) {
        return std::find(parts.begin(), parts.end(), part.part) != parts.end();
      };
      if (is_in(kHostWork) || (!by_syncs && is_in(kExposed))) add_part(part);
    }
  }

  // What the host gained or lost beyond what the device hid or laid bare meanwhile.
  void say_balance(double sum) {
    const Part* most = nullptr;
    for (const Part& part : kHostWork) {
      const bool explains = (change_of(part) > 0) == (sum > 0) && change_of(part) != 0;
      if (explains && (most == nullptr || std::abs(change_of(part)) > std::abs(change_of(*most)))) most = &part;
    }
    say(most != nullptr ? "the host, most " + std::string(name_of(*most))
        : sum > 0       ? "device work that host work no longer hides"
                        : "device work that host work now hides",
        sum);
  }

  // Kernels or copies whose part of the step changed although their time on the device did not.
  bool is_uncovered(const PartChange& part) const {
    if (!is_work(part.part) || !is_worth(static_cast<double>(part.change_ns()))) return false;
    const double device = device_time(after_, part.part) - device_time(before_, part.part);
    return device / static_cast<double>(part.change_ns()) < kExplained;
  }
  // What a piece of work itself changed of the step: of its time on the device what decides the step, and of that no
  // more than its time on the device changed.
  static double own_change(const WorkChange& work) {
    const double device = work.change_ns();
    const double path = work.path_after - work.path_before;
    if ((device > 0) != (path > 0)) return 0;
    return std::abs(path) < std::abs(device) ? path : device;
  }
  // Work that came, went or runs otherwise takes time of its own, also where most of its part is what the host no
  // longer hides, or hides now. Returns that time: of the part's change at most all.
  double add_other_work(const PartChange& part) {
    const auto change = static_cast<double>(part.change_ns());
    double sum = 0;
    const WorkChange* most = nullptr;  // of those that changed the step as the part did
    for (const WorkChange& work : d_.work) {
      if (work.part != part.part || work.change == Change::kNone) continue;
      const double own = own_change(work);
      sum += own;
      if (own / change <= 0) continue;
      if (most == nullptr || std::abs(own) > std::abs(own_change(*most))) most = &work;
    }
    if (!is_worth(sum) || (sum > 0) != (change > 0)) return 0;
    if (std::abs(sum) > std::abs(change)) sum = change;
    say(std::string(name_of(part.part)) + ": " + say_work(*most), sum);
    return sum;
  }
  static bool is_work(Part part) { return is_kernels(part) || part == Part::kCopies || part == Part::kCommunication; }

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
    // Casts that come or go with a precision are counted among small operators; the precision is the cause of both.
    const double by_precision = add_precision();
    constexpr size_t kMost = 5;
    size_t said = 0;
    for (const WorkChange& work : d_.work) {
      if (said == kMost) break;
      if (!is_worth(work.change_ns()) || (many_small_ops && has_other_calls(work))) continue;
      if (by_precision != 0 && work.change == Change::kPrecision) continue;
      say(say_work(work), work.change_ns());
      ++said;
    }
    for (const PartChange& part : d_.parts) {
      if (part.part == Part::kCalls || (part.part == Part::kBetweenOps && !many_small_ops)) add_part(part);
    }
  }

  // Operators that run in another precision, as one reason. Returns what they changed.
  double add_precision() {
    double sum = 0;
    size_t count = 0;
    const WorkChange* most = nullptr;
    for (const WorkChange& work : d_.work) {
      if (work.change != Change::kPrecision) continue;
      sum += work.change_ns();
      ++count;
      if (most == nullptr || std::abs(work.change_ns()) > std::abs(most->change_ns())) most = &work;
    }
    if (count < 2 || !is_worth(sum)) return 0;
    say(say_work(*most) + ", and " + std::to_string(count - 1) + " more", sum);
    return sum;
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
    // Bytes do not vary by chance: they come first where the step is not known to have changed.
    const bool same_time = d_.step.method == Method::kNone
                               ? std::abs(d_.step.ratio - 1) < kMayBeNoise
                               : d_.step.outcome == Outcome::kSame || d_.step.outcome == Outcome::kInconclusive;
    // A larger batch takes more by itself.
    const bool first = d_.batch_ratio == 1 &&
                       (std::abs(d_.step.ratio - 1) < 0.03 || (same_time && std::abs(is - was) >= kMayBeNoise * was));
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

#include "live/sampler.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "live/native_view.h"
#include "live/thread_clock.h"

namespace firelane::live {

namespace {

int64_t now_ns(clockid_t clock) {
  struct timespec time{};
  ::clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

constexpr int64_t kLongestSleepNs = 10'000'000;  // between two looks at `stop`, which nobody waits for longer

bool is_stopped(const SampleOptions& options) { return options.stop != nullptr && options.stop->load(); }

void sleep_until(int64_t when_ns, const SampleOptions& options) {
  for (int64_t now = now_ns(CLOCK_MONOTONIC); now < when_ns && !is_stopped(options); now = now_ns(CLOCK_MONOTONIC)) {
    const int64_t until_ns = std::min(when_ns, now + kLongestSleepNs);
    struct timespec time{};
    time.tv_sec = until_ns / 1'000'000'000;
    time.tv_nsec = until_ns % 1'000'000'000;
    if (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) return;  // `stop` may be set
  }
}

// A name that a thread was given: one that it shares with the process is the process's.
std::string name_of(const Process& process, pid_t thread) {
  const auto comm = [&](pid_t id) {
    std::string text = read_proc(process.pid, "task/" + std::to_string(id) + "/comm");
    return text.substr(0, text.find('\n'));
  };
  std::string name = comm(thread);
  return thread != process.pid && name == comm(process.pid) ? "" : name;
}

constexpr uint64_t kWithoutPython = uint64_t{1} << 63;  // no address of a program has it

class Counter {
 public:
  Counter(const Process& process, Samples& samples, size_t most_timed)
      : process_(process), samples_(samples), most_timed_(most_timed) {}

  // `native`: null without native frames.
  void add(const std::vector<ThreadStack>& seen, int64_t interval_ns, StackReader& reader, NativeView* native) {
    const uint64_t ticks = now_ticks();
    ++look_;
    for (const ThreadStack& each : seen) {
      Known& known = thread_of(each);
      const bool on_cpu = known.clock.was_on_cpu(interval_ns, each.thread != 0 && each.has_changed);
      samples_.knows_cpu |= known.clock.is_known();
      const uint32_t stack =
          native == nullptr ? each.stack : native->stack_at_look(reader, each, on_cpu, known.clock.run_ns());
      if (known.counted == nullptr || known.stack != stack) {
        known.stack = stack;
        known.counted = &counts_[uint64_t{known.index} << 32 | stack];  // its place in the map does not move
      }
      ++known.counted->all;
      known.counted->on_cpu += on_cpu ? 1 : 0;
      known.counted->with_gil += each.holds_gil ? 1 : 0;
      if (most_timed_ > 0) keep_time(known, {ticks, interval_ns, known.index, known.stack, on_cpu, each.holds_gil});
    }
  }

  void finish() {
    for (const auto& [key, counts] : counts_)
      samples_.counted.push_back({static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), counts});
    std::sort(samples_.counted.begin(), samples_.counted.end(), [](const SampledStack& a, const SampledStack& b) {
      return std::pair(a.thread, a.stack) < std::pair(b.thread, b.stack);
    });
  }

 private:
  struct Known {
    uint32_t index = 0;
    pid_t native_id = 0;
    uint32_t stack = 0;
    SampleCounts* counted = nullptr;
    ThreadClock clock;
    size_t last_timed = SIZE_MAX;  // in Samples::timed
    uint64_t last_look = 0;        // that it was part of
  };

  // What waits in one place is one sample, however long: most threads of a program do.
  void keep_time(Known& known, const TimedSample& sample) {
    const bool is_next = known.last_timed != SIZE_MAX && known.last_look + 1 == look_;
    known.last_look = look_;
    if (is_next && !sample.on_cpu) {
      TimedSample& last = samples_.timed[known.last_timed];
      if (!last.on_cpu && last.stack == sample.stack && last.has_gil == sample.has_gil) {
        last.weight_ns += sample.weight_ns;
        return;
      }
    }
    if (samples_.timed.size() >= most_timed_) {
      known.last_timed = SIZE_MAX;
      ++samples_.untimed_count;
      return;
    }
    known.last_timed = samples_.timed.size();
    samples_.timed.push_back(sample);
  }

  Known& thread_of(const ThreadStack& each) {
    const uint64_t key = each.thread != 0 ? each.thread : kWithoutPython | static_cast<uint64_t>(each.native_id);
    auto found = threads_.find(key);
    if (found != threads_.end() && found->second.native_id != each.native_id) {  // another one at the same place
      threads_.erase(found);
      found = threads_.end();
    }
    if (found == threads_.end()) {
      const auto index = static_cast<uint32_t>(samples_.threads.size());
      samples_.threads.push_back({each.native_id, name_of(process_, each.native_id)});
      Known known{.index = index, .native_id = each.native_id, .clock = ThreadClock(process_.pid, each.native_id)};
      found = threads_.emplace(key, std::move(known)).first;
    }
    return found->second;
  }

  const Process& process_;
  Samples& samples_;
  size_t most_timed_;
  uint64_t look_ = 0;
  std::unordered_map<uint64_t, Known> threads_;
  std::unordered_map<uint64_t, SampleCounts> counts_;  // by thread and stack
};

// Native functions come after Python's.
void add_native(const NativeView& native, Samples& out) {
  const auto first = static_cast<uint32_t>(out.functions.size());
  for (const NativeFunction& function : native.native_functions())
    out.functions.push_back({.name = function.name, .file = function.library, .is_native = true});
  for (std::vector<Frame>& stack : out.stacks) {
    for (Frame& frame : stack) {
      if ((frame.function & NativeView::kNative) != 0) frame.function = first + (frame.function & ~NativeView::kNative);
    }
  }
  out.has_native = true;
  out.unfit_count = native.unfit_count();
  out.without_native_count = native.missing_count();
  out.sampling_note = native.sampling_note();
}

// One look at least, and then until it is time to end.
void look_on(StackReader& reader, NativeView* native, Counter& counter, const SampleOptions& options, Samples& out) {
  const auto interval_ns = static_cast<int64_t>(1e9 / options.rate);
  const int64_t begin = now_ns(CLOCK_MONOTONIC);
  const auto end = options.duration_s > 0 ? begin + static_cast<int64_t>(options.duration_s * 1e9) : INT64_MAX;
  std::vector<ThreadStack> seen;
  int64_t due = begin;
  int64_t last = begin - interval_ns;
  do {
    if (!reader.look(seen)) break;
    const int64_t now = now_ns(CLOCK_MONOTONIC);
    if (native != nullptr) native->add_other_threads(seen);
    counter.add(seen, now - last, reader, native);
    ++out.tick_count;
    last = now;
    due += interval_ns;
    if (due < now) {  // too late for some: they are left out, not made up for
      const int64_t missed = (now - due) / interval_ns + 1;
      out.missed_count += static_cast<uint64_t>(missed);
      due += missed * interval_ns;
    }
    if (due >= end) break;
    if (native != nullptr)
      native->wait_until(due, reader);
    else
      sleep_until(due, options);
  } while (!is_stopped(options));
}

}  // namespace

std::string wrong_rate(double rate) {
  if (rate >= kLowestRate && rate <= kHighestRate) return {};
  std::array<char, 96> text;
  std::snprintf(text.data(), text.size(), "%g is not a rate between %g and %g samples per second", rate, kLowestRate,
                kHighestRate);
  return text.data();
}

Result<Samples> sample(const Process& process, const Python& python, const SampleOptions& options) {
  if (std::string wrong = wrong_rate(options.rate); !wrong.empty()) return Error{std::move(wrong)};
  FL_TRY(StackReader reader, StackReader::open(process, python));
  Samples out{.rate = options.rate};
  Counter counter(process, out, options.most_timed);
  std::optional<NativeView> native;
  if (options.native) {
    FL_TRY(NativeView opened, NativeView::open(process, python, static_cast<int64_t>(1e9 / options.rate)));
    native.emplace(std::move(opened));
  }
  const int64_t begin = now_ns(CLOCK_MONOTONIC);
  const int64_t begin_cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
  try {
    look_on(reader, native ? &*native : nullptr, counter, options, out);
  } catch (const std::exception& error) {  // no memory, as a rule: what was seen so far is kept
    out.failure = error.what();
  }
  counter.finish();
  out.duration_s = static_cast<double>(now_ns(CLOCK_MONOTONIC) - begin) / 1e9;
  out.own_cpu_s = static_cast<double>(now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_cpu) / 1e9;
  out.torn_count = reader.torn_count();
  out.functions = reader.functions();
  out.stacks = native ? native->stacks() : reader.stacks();
  if (native) add_native(*native, out);
  return out;
}

}  // namespace firelane::live

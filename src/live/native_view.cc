#include "live/native_view.h"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <utility>

namespace firelane::live {

namespace {

constexpr uint64_t kListEvery = 10;          // looks
constexpr size_t kMostSampledThreads = 256;  // each takes a file and 68 KiB

}  // namespace

Result<NativeView> NativeView::open(const Process& process, const Python& python, int64_t interval_ns) {
  FL_TRY(NativeReader native, NativeReader::open(process, python.image));
  NativeView out(std::move(native), interval_ns);
  out.stacks_.emplace_back();  // the empty one is 0
  return out;
}

void NativeView::add_other_threads(std::vector<ThreadStack>& python) {
  if (look_count_++ % kListEvery == 0) {
    if (std::vector<pid_t> ids = native_.threads(); !ids.empty()) {  // none: no file was left to ask with
      ids_ = std::move(ids);
      forget_ended();
    }
    native_.refresh();
  }
  std::vector<pid_t> known;
  for (const ThreadStack& each : python) known.push_back(each.native_id);
  std::sort(known.begin(), known.end());
  for (const pid_t id : ids_) {
    if (!std::binary_search(known.begin(), known.end(), id)) python.push_back({.thread = 0, .native_id = id});
  }
}

void NativeView::forget_ended() {
  std::erase_if(threads_, [&](const auto& each) {
    const bool has_ended = !std::binary_search(ids_.begin(), ids_.end(), each.first);
    if (has_ended && each.second.samples) --sampled_threads_;
    return has_ended;
  });
}

uint32_t NativeView::stack_at_look(StackReader& reader, const ThreadStack& seen, bool is_on_cpu, int64_t run_ns) {
  if (seen.native_id == 0) return python_only(reader, seen.stack);
  Thread& thread = threads_[seen.native_id];
  thread.id = seen.native_id;
  thread.python_thread = seen.thread;
  if (is_on_cpu) {
    thread.place.reset();
    open_samples(thread);
    if (const auto sampled = std::exchange(thread.sampled, std::nullopt)) return *sampled;
    ++missing_count_;
    return python_only(reader, seen.stack);
  }
  const bool holds_still = thread.place && run_ns >= 0 && thread.run_ns == run_ns && thread.python_stack == seen.stack;
  if (!holds_still && !read_waiting(reader, seen, thread)) {
    thread.place.reset();
    return python_only(reader, seen.stack);
  }
  thread.run_ns = run_ns;
  return thread.stack;
}

void NativeView::open_samples(Thread& thread) {
  if (thread.samples || thread.is_refused || is_forbidden_) return;
  thread.is_refused = true;
  if (sampled_threads_ == kMostSampledThreads) {
    ++refused_threads_;
    why_refused_ = std::to_string(kMostSampledThreads) + " are sampled at most";
    return;
  }
  SamplesRefused refused{};
  auto samples = ThreadSamples::open(thread.id, interval_ns_, refused);
  if (samples.ok()) {
    thread.samples.emplace(std::move(samples).value());
    thread.is_refused = false;
    ++sampled_threads_;
  } else if (refused != SamplesRefused::kEnded) {
    is_forbidden_ = refused == SamplesRefused::kForbidden && sampled_threads_ == 0;
    ++refused_threads_;
    why_refused_ = samples.error().message;
  }
}

std::string NativeView::sampling_note() const {
  if (refused_threads_ == 0) return {};
  if (is_forbidden_) return "native frames of threads that wait only: " + why_refused_;
  return "no native frames of " + std::to_string(refused_threads_) + (refused_threads_ == 1 ? " thread" : " threads") +
         " while running: " + why_refused_;
}

// Native frames, then Python's, and then whether it still waits at the same place: so both are of one moment.
bool NativeView::read_waiting(StackReader& reader, const ThreadStack& seen, Thread& thread) {
  WaitPlace place;
  if (!native_.where_waits(thread.id, place)) return false;
  const NamedStack native = native_.stack_at(place);
  ThreadStack python{.stack = 0};
  if (seen.thread != 0 && !reader.look_again(seen.thread, python)) return false;
  WaitPlace after;
  if (!native_.where_waits(thread.id, after) || !(after == place)) return false;
  thread.place = place;
  thread.python_stack = python.stack;
  thread.stack = merged(reader.stacks()[python.stack], native);
  return true;
}

void NativeView::take_sample(StackReader& reader, Thread& thread) {
  ThreadStack python{.stack = 0};
  const bool has_python = thread.python_thread == 0 || reader.look_again(thread.python_thread, python);
  Registers registers;
  StackCopy stack;
  if (!thread.samples->take(registers, stack) || !has_python) return;
  thread.sampled = merged(reader.stacks()[python.stack], native_.stack_of(registers, stack));
}

bool NativeView::is_waiting(pid_t thread) const {
  const auto found = threads_.find(thread);
  return found != threads_.end() && found->second.place.has_value();
}

bool NativeView::has_sample(pid_t thread) const {
  const auto found = threads_.find(thread);
  return found != threads_.end() && found->second.sampled.has_value();
}

void NativeView::wait_until(int64_t due_ns, StackReader& reader) {
  std::vector<struct pollfd> files;
  std::vector<Thread*> owners;
  for (auto& [id, thread] : threads_) {
    if (!thread.samples) continue;
    files.push_back({.fd = thread.samples->file(), .events = POLLIN, .revents = 0});
    owners.push_back(&thread);
  }
  for (;;) {
    struct timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t left_ns = due_ns - (int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
    if (left_ns <= 0) return;
    const struct timespec left{.tv_sec = left_ns / 1'000'000'000, .tv_nsec = left_ns % 1'000'000'000};
    if (::ppoll(files.data(), files.size(), &left, nullptr) <= 0) return;  // due, or a signal: `stop` is looked at
    for (size_t i = 0; i < files.size(); ++i) {
      if ((files[i].revents & POLLIN) != 0) take_sample(reader, *owners[i]);
      if ((files[i].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) files[i].fd = -1;  // the thread has ended
    }
  }
}

uint32_t NativeView::python_only(StackReader& reader, uint32_t python_stack) {
  return stack_id(reader.stacks()[python_stack]);
}

uint32_t NativeView::merged(const std::vector<Frame>& python, const NamedStack& native) {
  std::vector<NativeFrame> frames = native.frames;
  for (NativeFrame& frame : frames) frame.function |= kNative;
  MergedStack out = merge(python, frames, native.is_whole);
  unfit_count_ += out.fits ? 0 : 1;
  return stack_id(std::move(out.frames));
}

uint32_t NativeView::stack_id(std::vector<Frame> frames) {
  if (frames.empty()) return 0;
  std::vector<uint64_t> key;
  key.reserve(frames.size());
  for (const Frame& frame : frames) key.push_back(uint64_t{frame.function} << 32 | static_cast<uint32_t>(frame.line));
  const auto [found, is_new] = stack_ids_.try_emplace(std::move(key), static_cast<uint32_t>(stacks_.size()));
  if (is_new) stacks_.push_back(std::move(frames));
  return found->second;
}

}  // namespace firelane::live

#include "record/core/recorder.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

namespace firelane::record {
namespace detail {
namespace {
constinit ThreadBuffer g_no_buffer{};
}  // namespace

constinit std::atomic<uint64_t> g_recording{0};
constinit thread_local ThreadBuffer* t_buffer __attribute__((tls_model("initial-exec"))) = &g_no_buffer;
// Set by the thread's last destructors: what comes after is not recorded.
static constinit thread_local bool t_exiting __attribute__((tls_model("initial-exec"))) = false;

ThreadBuffer* attach_thread() noexcept {
  const uint64_t session = g_recording.load(std::memory_order_acquire);
  if (session == 0 || t_exiting) return nullptr;
  if (t_buffer->session_ == session) return t_buffer;  // resumed between the caller's look and ours
  return Recorder::get().attach(session);
}

ThreadBuffer* attach_for_begin() noexcept {
  ThreadBuffer* b = t_buffer;
  if (g_recording.load(std::memory_order_relaxed) != 0) return attach_thread();
  // Paused inside slices that were recorded: remember to skip this one's end.
  if (b->open_ > 0 && Recorder::get().is_current(b->session_)) {
    b->push_fate(false);
    b->set_limit();
  }
  return nullptr;
}

ThreadBuffer* attached_for_end() noexcept {
  ThreadBuffer* b = t_buffer;
  return b->open_ > 0 && Recorder::get().is_current(b->session_) ? b : nullptr;
}

}  // namespace detail

using detail::g_recording;
using detail::t_buffer;

Recorder& Recorder::get() noexcept {
  // Never destroyed: threads may end after main's statics are gone.
  alignas(Recorder) static char storage[sizeof(Recorder)];
  static Recorder* const recorder = new (storage) Recorder();
  return *recorder;
}

Recorder::Recorder() noexcept {
  ::sem_init(&wake_, 0, 0);
  ::pthread_key_create(&thread_key_, thread_exits);
  ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  std::atexit([] {
    Recorder& recorder = get();
    Client* client = nullptr;
    {
      const std::lock_guard lock(recorder.mutex_);
      client = recorder.client_;
    }
    if (client != nullptr) client->on_exit();
  });
}

uint64_t Recorder::open_session(Client* client, uint64_t max_bytes, const char*& reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (session_ != 0) {
    reason = "another recording is running in this process; stop it first";
    return 0;
  }
  if (!pool_.mapped() && !pool_.map()) {
    reason = "no address space for the recorder's 48 MiB of buffers";
    return 0;
  }
  const uint64_t blocks = max_bytes / kBlockBytes;
  pool_.set_limit(static_cast<uint32_t>(blocks < 4                       ? 4
                                        : blocks > BlockPool::kMaxBlocks ? BlockPool::kMaxBlocks
                                                                         : blocks));
  client_ = client;
  next_index_ = 0;
  unattached_losses_ = 0;
  session_ = ++last_session_;
  return last_session_;
}

void Recorder::set_recording(uint64_t session, bool on) noexcept {
  const std::lock_guard lock(mutex_);
  if (session_ != session) return;
  g_recording.store(on ? session : 0, std::memory_order_release);
}

void Recorder::close_session() noexcept {
  const std::lock_guard lock(mutex_);
  g_recording.store(0, std::memory_order_relaxed);
  while (threads_ != nullptr) {
    ThreadBuffer* b = threads_;
    threads_ = b->next_;
    b->attached_ = false;
    if (exited(b)) {
      free_read_blocks(b);
      pool_.give(b);
    }
  }
  client_ = nullptr;
  session_ = 0;
  pool_.trim();
}

ThreadBuffer* Recorder::new_buffer() noexcept {
  void* memory = pool_.take();
  if (memory == nullptr) return nullptr;
  auto* block = static_cast<Block*>(pool_.take());
  if (block == nullptr) {
    pool_.give(memory);
    return nullptr;
  }
  auto* b = new (memory) ThreadBuffer();
  b->block_ = block;
  b->read_block_ = block;
  return b;
}

// Frees the chain from the drain's block up to, but not including, the writer's.
void Recorder::reset(ThreadBuffer* b) noexcept {
  while (b->read_block_ != b->block_) {
    Block* next = b->read_block_->next.load(std::memory_order_relaxed);
    pool_.give(b->read_block_);
    b->read_block_ = next;
  }
  b->read_words_ = 0;
  b->block_->next.store(nullptr, std::memory_order_relaxed);
  b->block_->committed.store(0, std::memory_order_relaxed);
  b->cursor_ = b->block_->words;
  b->open_ = 0;
  b->last_dropped_ = false;
  b->lost_events_ = 0;
  for (uint16_t& ends : b->lost_ends_) ends = 0;
  b->fate_depth_ = 0;
  b->untracked_depth_ = 0;
  b->total_lost_.store(0, std::memory_order_relaxed);
  b->slots_.clear();
  b->set_limit();
}

ThreadBuffer* Recorder::attach(uint64_t session) noexcept {
  const std::lock_guard lock(mutex_);
  if (session_ != session) return nullptr;
  const bool known = t_buffer != &detail::g_no_buffer;
  ThreadBuffer* b = known ? t_buffer : new_buffer();
  if (b == nullptr) {
    unattached_losses_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  reset(b);
  if (!known) {
    b->thread_id_ = static_cast<uint32_t>(::syscall(SYS_gettid));
    ::pthread_setspecific(thread_key_, b);
    t_buffer = b;
  }
  b->session_ = session;
  b->index_ = next_index_++;
  b->attached_ = true;
  b->next_ = threads_;
  threads_ = b;
  return b;
}

void* Recorder::take_block() noexcept {
  void* block = pool_.take();
  // One wake-up per drain: when an eighth is in use, and again when everything is.
  if (pool_.in_use() * 8 > pool_.limit() && !wake_asked_.exchange(true, std::memory_order_relaxed)) wake();
  return block;
}

void Recorder::wait(uint32_t milliseconds) noexcept {
  wake_asked_.store(false, std::memory_order_relaxed);
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  const uint64_t ns = static_cast<uint64_t>(until.tv_nsec) + uint64_t{milliseconds} * 1'000'000;
  until.tv_sec += static_cast<time_t>(ns / 1'000'000'000);
  until.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  if (::sem_clockwait(&wake_, CLOCK_MONOTONIC, &until) != 0) return;
  while (::sem_trywait(&wake_) == 0) {
  }
}

void Recorder::attached_threads(std::vector<ThreadBuffer*>& out) {
  out.clear();
  const std::lock_guard lock(mutex_);
  for (ThreadBuffer* b = threads_; b != nullptr; b = b->next_) out.push_back(b);
}

void Recorder::free_read_blocks(ThreadBuffer* b) noexcept {
  Block* block = b->read_block_;
  while (block != nullptr) {
    Block* next = block == b->block_ ? nullptr : block->next.load(std::memory_order_relaxed);
    pool_.give(block);
    block = next;
  }
}

void Recorder::release(ThreadBuffer* b) noexcept {
  const std::lock_guard lock(mutex_);
  ThreadBuffer** link = &threads_;
  while (*link != nullptr && *link != b) link = &(*link)->next_;
  if (*link == b) *link = b->next_;
  free_read_blocks(b);
  pool_.give(b);
}

void Recorder::thread_exits(void* buffer) noexcept {
  auto* b = static_cast<ThreadBuffer*>(buffer);
  Recorder& recorder = get();
  const std::lock_guard lock(recorder.mutex_);
  detail::t_exiting = true;
  t_buffer = &detail::g_no_buffer;
  if (b->attached_) {
    b->exited_.store(true, std::memory_order_release);  // the drain reads the rest and frees it
  } else {
    recorder.free_read_blocks(b);
    recorder.pool_.give(b);
  }
}

void Recorder::before_fork() noexcept { get().mutex_.lock(); }
void Recorder::after_fork_in_parent() noexcept { get().mutex_.unlock(); }

// The child has one thread and a copy of the parent's memory. Its buffers are freed; the mutex is ours.
void Recorder::after_fork_in_child() noexcept {
  Recorder& recorder = get();
  g_recording.store(0, std::memory_order_relaxed);
  t_buffer = &detail::g_no_buffer;
  ::pthread_setspecific(recorder.thread_key_, nullptr);
  if (recorder.client_ != nullptr) recorder.client_->on_fork_in_child();
  recorder.client_ = nullptr;
  recorder.threads_ = nullptr;
  recorder.session_ = 0;
  recorder.pool_.unmap();
  ++recorder.fork_count_;
  ::sem_init(&recorder.wake_, 0, 0);
  recorder.mutex_.unlock();
}

ThreadBuffer* Recorder::take_scratch() noexcept {
  const std::lock_guard lock(mutex_);
  if (!pool_.mapped() && !pool_.map()) return nullptr;
  ThreadBuffer* b = new_buffer();
  if (b != nullptr) reset(b);
  return b;
}

void Recorder::rewind_scratch(ThreadBuffer* b) noexcept { reset(b); }

void Recorder::give_scratch(ThreadBuffer* b) noexcept {
  const std::lock_guard lock(mutex_);
  free_read_blocks(b);
  pool_.give(b);
}

size_t record_words(const uint64_t* words) noexcept {
  switch (kind_of(words[0])) {
    case Word::kEnd:
    case Word::kEndPython:
    case Word::kEndModule:
    case Word::kEndCall: return 1;
    case Word::kBegin:
    case Word::kAttribute:
    case Word::kInstant:
    case Word::kAsyncEnd:
    case Word::kThreadName: return 2;
    case Word::kBeginSequence:
    case Word::kSlice:
    case Word::kCounter:
    case Word::kAsyncBegin:
    case Word::kLost: return 3;
    case Word::kDefine: return 2 + (words[1] + 7) / 8;
    case Word::kMemory: return 6;
    case Word::kPlacedMemory: return 8;
  }
  return 1;
}

}  // namespace firelane::record

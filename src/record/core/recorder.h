// What a process has once: the pool, the list of attached threads, the session that records.
// Sessions come and go; this stays (threads may hold a block of the pool for as long as
// they live), and is rebuilt in a forked child.
//
// The mutex is held for a few list operations, never while anything is written or waited
// for. Hooks take it once per thread and session.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "record/core/block_pool.h"
#include "record/core/thread_buffer.h"

namespace firelane::record {

class Recorder {
 public:
  // Is notified of exit and fork: a session's implementation.
  class Client {
   public:
    virtual ~Client() = default;
    virtual void on_exit() noexcept = 0;           // in atexit: complete the file
    virtual void on_fork_in_child() noexcept = 0;  // close what the parent still writes
  };

  static Recorder& get() noexcept;

  // 0 if there is another session or not enough memory (`reason` says which).
  uint64_t open_session(Client* client, uint64_t max_bytes, const char*& reason) noexcept;
  void set_recording(uint64_t session, bool on) noexcept;
  // After the drain is gone: forgets the attached threads, gives memory back.
  void close_session() noexcept;

  // Counts forks: a session that remembers another number is a child's copy.
  uint32_t fork_count() const noexcept { return fork_count_; }

  // ---- the thread's side
  ThreadBuffer* attach(uint64_t session) noexcept;
  void* take_block() noexcept;
  bool is_current(uint64_t session) const noexcept { return session_.load(std::memory_order_relaxed) == session; }
  uint64_t unattached_losses() const noexcept { return unattached_losses_.load(std::memory_order_relaxed); }

  // ---- the drain's side
  void attached_threads(std::vector<ThreadBuffer*>& out);
  // Calls visit(const uint64_t* words) for each new record of `b` in order, at most kReadBlocks
  // blocks of them, so that one busy thread cannot starve the others; frees the blocks it has
  // read. True if there is more.
  static constexpr int kReadBlocks = 32;
  template <typename Visit>
  bool read(ThreadBuffer* b, Visit&& visit);
  static bool exited(const ThreadBuffer* b) noexcept { return b->exited_.load(std::memory_order_acquire); }
  static uint32_t index_of(const ThreadBuffer* b) noexcept { return b->index_; }
  static uint64_t losses_of(const ThreadBuffer* b) noexcept { return b->total_lost_.load(std::memory_order_relaxed); }
  // REQUIRES: exited(b), and read() returned false after that was seen.
  void release(ThreadBuffer* b) noexcept;
  uint64_t in_flight_bytes() const noexcept { return uint64_t{pool_.in_use()} * kBlockBytes; }
  uint32_t thread_count() const noexcept { return next_index_.load(std::memory_order_relaxed); }
  // So that hooks get blocks whose pages are already mapped in.
  void warm_blocks() noexcept { pool_.warm(BlockPool::kMaxWarm); }
  // Waits for a wake-up by the fill level or wake(), or for the timeout.
  void wait(uint32_t milliseconds) noexcept;
  void wake() noexcept { ::sem_post(&wake_); }

  // A buffer that belongs to no session, to measure the cost of its functions. Null if there is no memory.
  ThreadBuffer* take_scratch() noexcept;
  void rewind_scratch(ThreadBuffer* b) noexcept;
  void give_scratch(ThreadBuffer* b) noexcept;

 private:
  Recorder() noexcept;
  static void thread_exits(void* buffer) noexcept;
  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child() noexcept;
  ThreadBuffer* new_buffer() noexcept;
  void reset(ThreadBuffer* b) noexcept;
  void free_read_blocks(ThreadBuffer* b) noexcept;

  std::mutex mutex_;
  BlockPool pool_;
  sem_t wake_;
  std::atomic<bool> wake_asked_{false};
  pthread_key_t thread_key_{};
  Client* client_ = nullptr;          // guarded by mutex_
  ThreadBuffer* threads_ = nullptr;   // guarded by mutex_
  std::atomic<uint64_t> session_{0};  // recording or paused; 0 none
  uint64_t last_session_ = 0;
  std::atomic<uint32_t> next_index_{0};
  std::atomic<uint64_t> unattached_losses_{0};
  uint32_t fork_count_ = 0;
};

// Words of the record that starts with `words`.
size_t record_words(const uint64_t* words) noexcept;

template <typename Visit>
bool Recorder::read(ThreadBuffer* b, Visit&& visit) {
  for (int blocks = 0; blocks < kReadBlocks; ++blocks) {
    Block* block = b->read_block_;
    Block* next = block->next.load(std::memory_order_acquire);  // before committed: then that is final
    const uint32_t committed = block->committed.load(std::memory_order_acquire);
    while (b->read_words_ < committed) {
      const uint64_t* words = block->words + b->read_words_;
      visit(words);
      b->read_words_ += static_cast<uint32_t>(record_words(words));
    }
    if (next == nullptr) return false;
    b->read_block_ = next;
    b->read_words_ = 0;
    pool_.give(block);
  }
  return true;
}

}  // namespace firelane::record

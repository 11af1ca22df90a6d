// The drain: takes records out of the threads' blocks, encodes, compresses and writes them.
//
// One thread, woken every 200 ms or when an eighth of the pool is filled; the only one that
// writes to the disk. Its own memory is bounded: one chunk (1 MiB), zstd's context, a table
// of texts that is restarted at 6 MiB, 8 KiB per thread, and what waits or is being written: notes of at most 4 MiB,
// metadata of at most 48 MiB, which are only reached by stack samples.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/string_pool.h"
#include "format/chunk.h"
#include "format/events.h"
#include "record/core/device_source.h"
#include "record/core/recorder.h"

namespace firelane::record {

class Drain final : private DeviceSink {
 public:
  struct Options {
    uint32_t interval_ms = 200;
    int zstd_level = 1;
    uint64_t start_ticks = 0;
    uint64_t trace_id = 0;
  };

  // `on_failure` is called at most once, from the drain's thread, for example when the disk is full.
  Drain(std::unique_ptr<format::ByteSink> sink, const Options& options, std::function<void(std::string)> on_failure);

  // Writes the header and the first notes: "" or why that is not possible. Then run() may begin.
  std::string open(const std::string& first_notes);
  bool start_thread() noexcept;
  // Reads what is left, writes `last_notes`, the index and the trailer. Waits for the thread.
  void finish(const std::string& last_notes) noexcept;

  // Items of a notes chunk (format/notes.h), written by the next pass. Any thread. False when more
  // than 4 MiB would wait: they are not taken.
  bool add_notes(std::string_view items);
  // The same for what may be large, whole items: at most 48 MiB of it wait or are being written, and take no room from
  // notes.
  bool add_metadata(std::string_view items);

  // Null: none. Waits while the source before is being asked.
  void set_device_source(DeviceSource* source);

  // Events that were written.
  uint64_t event_count() const noexcept { return event_count_.load(std::memory_order_acquire); }
  uint64_t lost_count() const noexcept { return lost_count_.load(std::memory_order_relaxed); }
  uint64_t file_bytes() const noexcept { return file_bytes_.load(std::memory_order_relaxed); }
  void abandon_in_child() noexcept { sink_->abandon(); }

 private:
  // What the drain knows about a thread.
  struct ThreadState {
    std::vector<uint32_t> id_of_slot = std::vector<uint32_t>(SlotTable::kSlotCount, 0);
    std::string name;
    uint64_t losses = 0;
  };

  void run() noexcept;
  // One round over all threads. True when some thread has more to give already.
  bool pass();
  bool drain_thread(ThreadBuffer* b, ThreadState& state);
  void convert(const uint64_t* words, ThreadState& state);
  void flush_section();
  void flush_chunk();
  void drain_device();
  void flush_device();
  void begin_payload();
  uint32_t text(std::string_view bytes) override { return intern(bytes); }
  format::DeviceWriter& rows() override { return device_rows_; }
  void checkpoint() override;
  void write_notes();
  void note_thread_name(ThreadBuffer* b, ThreadState& state);
  uint32_t intern(std::string_view text);
  // A name with its overload: a text of its own, although the file shows the name alone.
  uint32_t intern_op(std::string_view name_and_overload);
  void write(format::ChunkKind kind, std::string_view raw);
  void fail(std::string reason);

  std::unique_ptr<format::ByteSink> sink_;
  Options options_;
  std::function<void(std::string)> on_failure_;
  format::ChunkWriter writer_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  bool failed_ = false;

  std::mutex notes_mutex_;
  std::string notes_;                  // guarded by notes_mutex_, as the next
  std::vector<std::string> metadata_;  // each less than a chunk, or one item
  size_t metadata_bytes_ = 0;          // of these, and of those that are being written

  std::mutex source_mutex_;
  DeviceSource* source_ = nullptr;  // guarded by source_mutex_

  // Used by the drain's thread only.
  std::vector<ThreadBuffer*> threads_;
  std::unordered_map<ThreadBuffer*, ThreadState> states_;
  format::SectionWriter section_;
  std::string sections_;
  format::DeviceWriter device_rows_;
  std::string payload_;
  StringPool texts_;
  uint32_t text_base_ = 0;  // file id of a text = its id in texts_ + text_base_
  std::vector<std::string_view> new_texts_;
  std::string overloads_;  // notes of new_texts_, to be written before them
  uint32_t first_new_text_ = 1;
  uint64_t losses_of_gone_threads_ = 0;
  uint64_t losses_written_ = 0;
  uint64_t converted_ = 0;  // events of this pass included, whose chunk is not written yet
  int64_t last_heartbeat_ns_ = 0;

  std::atomic<uint64_t> event_count_{0};
  std::atomic<uint64_t> lost_count_{0};
  std::atomic<uint64_t> file_bytes_{0};
};

// The loss that dropped events are counted under, in status and trace.
inline constexpr std::string_view kDroppedReason = "events dropped: the buffers were full";

}  // namespace firelane::record

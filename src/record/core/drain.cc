#include "record/core/drain.h"

#include <bit>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/own_thread.h"
#include "format/notes.h"

namespace firelane::record {
namespace {

constexpr size_t kSectionBytes = 128 << 10;
constexpr size_t kChunkBytes = 1 << 20;
constexpr size_t kTextTableBytes = 6 << 20;
constexpr size_t kMaxNotesBytes = 4 << 20;      // waiting for the next pass
constexpr size_t kMaxMetadataBytes = 48 << 20;  // not yet written; stack samples have less
constexpr size_t kMaxReasonBytes = format::ChunkWriter::kMaxLastNotes - 100;  // the stop's clocks follow it
constexpr int64_t kHeartbeatNs = 1'000'000'000;

// The thread's name as the system has it ("pt_autograd_0"); "" when it is gone.
std::string system_thread_name(uint32_t thread_id) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%u/comm", thread_id);
  std::string name;
  if (std::FILE* file = std::fopen(path, "re")) {
    char text[32] = "";
    name.assign(text, std::fread(text, 1, sizeof text, file));
    std::fclose(file);
  }
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

bool is_timed(Word kind) { return kind != Word::kAttribute && kind != Word::kDefine && kind != Word::kThreadName; }

}  // namespace

Drain::Drain(std::unique_ptr<format::ByteSink> sink, const Options& options,
             std::function<void(std::string)> on_failure)
    : sink_(std::move(sink)),
      options_(options),
      on_failure_(std::move(on_failure)),
      writer_(*sink_, options.zstd_level) {}

std::string Drain::open(const std::string& first_notes) {
  std::string error = writer_.write_header(options_.trace_id);
  if (error.empty()) error = writer_.write_chunk(format::ChunkKind::kNotes, first_notes);
  file_bytes_ = writer_.bytes_written();
  return error;
}

bool Drain::start_thread() noexcept {
  thread_ = start_own_thread("firelane-drain", [this] { run(); });
  return thread_.joinable();
}

void Drain::run() noexcept {
  Recorder::get().warm_blocks();
  bool more = false;
  while (!stop_.load(std::memory_order_acquire)) {
    if (!more) Recorder::get().wait(options_.interval_ms);
    try {
      more = pass();
    } catch (const std::exception&) {
      fail("out of memory");
    }
  }
  try {
    while (pass()) {
    }
    for (ThreadBuffer* b : threads_) note_thread_name(b, states_[b]);
    write_notes();
    if (!failed_) {
      if (std::string error = writer_.finish(event_count()); !error.empty()) fail(error);
    }
    file_bytes_ = writer_.bytes_written();
  } catch (const std::exception&) {
    fail("out of memory");
  }
}

void Drain::finish(const std::string& last_notes) noexcept {
  if (!thread_.joinable()) return;
  try {
    add_notes(last_notes);
  } catch (const std::exception&) {
  }
  stop_.store(true, std::memory_order_release);
  Recorder::get().wake();
  thread_.join();
  sink_->close();
}

bool Drain::add_notes(std::string_view items) {
  const std::lock_guard lock(notes_mutex_);
  if (notes_.size() + items.size() > kMaxNotesBytes) return false;
  notes_.append(items);
  return true;
}

bool Drain::add_metadata(std::string_view items) {
  const std::lock_guard lock(notes_mutex_);
  if (metadata_bytes_ + items.size() > kMaxMetadataBytes) return false;
  const bool fits = !metadata_.empty() && metadata_.back().size() + items.size() <= kChunkBytes;
  if (fits) {
    metadata_.back().append(items);
  } else {
    metadata_.emplace_back(items);
  }
  metadata_bytes_ += items.size();
  return true;
}

bool Drain::pass() {
  Recorder& recorder = Recorder::get();
  bool any_more = false;
  recorder.attached_threads(threads_);
  uint64_t losses = recorder.unattached_losses() + losses_of_gone_threads_;
  for (ThreadBuffer*& b : threads_) {
    const bool gone = Recorder::exited(b);  // before reading: then what is read is all
    ThreadState& state = states_[b];
    if (state.name.empty()) note_thread_name(b, state);
    const bool more = drain_thread(b, state);
    any_more |= more;
    losses += Recorder::losses_of(b);
    if (!gone || more) continue;
    losses_of_gone_threads_ += Recorder::losses_of(b);
    states_.erase(b);
    recorder.release(b);
    b = nullptr;
  }
  std::erase(threads_, nullptr);
  flush_chunk();
  drain_device();
  lost_count_ = losses;
  if (losses != losses_written_) {
    losses_written_ = losses;
    std::string items;
    format::NotesWriter(items).loss(kDroppedReason, losses);
    add_notes(items);
  }
  write_notes();
  file_bytes_ = writer_.bytes_written();
  event_count_.store(converted_, std::memory_order_release);
  return any_more;
}

bool Drain::drain_thread(ThreadBuffer* b, ThreadState& state) {
  bool begun = false;
  const bool more = Recorder::get().read(b, [&](const uint64_t* words) {
    const Word kind = kind_of(words[0]);
    if (kind == Word::kDefine) {
      const auto slot = static_cast<uint32_t>(words[0] >> 8) & (SlotTable::kSlotCount - 1);
      const std::string_view bytes{reinterpret_cast<const char*>(words + 2), words[1]};
      state.id_of_slot[slot] = (words[0] & kDefinesOp) != 0 ? intern_op(bytes) : intern(bytes);
      return;
    }
    if (!begun) {
      const uint64_t first = is_timed(kind) ? ticks_of(words[0], options_.start_ticks) : options_.start_ticks;
      section_.begin(Recorder::index_of(b), b->system_thread_id(), options_.start_ticks, first);
      begun = true;
    }
    convert(words, state);
    if (section_.byte_count() < kSectionBytes) return;
    flush_section();
    begun = false;
    if (sections_.size() >= kChunkBytes) flush_chunk();
  });
  if (begun) flush_section();
  if (sections_.size() >= kChunkBytes) flush_chunk();
  return more;
}

void Drain::convert(const uint64_t* words, ThreadState& state) {
  format::EventRecord r;
  const Word kind = kind_of(words[0]);
  if (is_timed(kind)) r.ticks = ticks_of(words[0], options_.start_ticks);
  const auto name = [&](uint64_t word) { return state.id_of_slot[word & (SlotTable::kSlotCount - 1)]; };
  const auto scope = [&] { return static_cast<format::Scope>(words[1] >> 32 & 0xFF); };
  bool is_event = true;
  switch (kind) {
    case Word::kBegin:
    case Word::kBeginSequence:
      r.kind = kind == Word::kBegin ? format::Record::kBegin : format::Record::kBeginSequence;
      r.text = name(words[1]);
      r.scope = scope();
      if (kind == Word::kBeginSequence) r.number = static_cast<int64_t>(words[2]);
      break;
    case Word::kEnd:
    case Word::kEndPython:
    case Word::kEndModule:
    case Word::kEndCall:
      r.kind = static_cast<format::Record>(static_cast<uint8_t>(format::Record::kEnd) + static_cast<uint8_t>(kind) -
                                           static_cast<uint8_t>(Word::kEnd));
      is_event = false;
      break;
    case Word::kSlice:
    case Word::kAsyncBegin:
      r.kind = kind == Word::kSlice ? format::Record::kSlice : format::Record::kAsyncBegin;
      r.text = name(words[1]);
      r.scope = scope();
      r.number = static_cast<int64_t>(words[2]);
      break;
    case Word::kAttribute:
      r.kind = format::Record::kAttribute;
      r.attribute = static_cast<format::Attribute>(words[0] >> 8 & 0xFF);
      if (format::is_text(r.attribute)) {
        r.text = name(words[1]);
      } else if (r.attribute == format::Attribute::kTensors) {
        r.number = name(words[1]);
      } else {
        r.number = static_cast<int64_t>(words[1]);
      }
      is_event = false;
      break;
    case Word::kMemory:
    case Word::kPlacedMemory:
      r.kind = format::Record::kMemory;
      r.memory = {.address = words[1],
                  .bytes = static_cast<int64_t>(words[2]),
                  .total_allocated_bytes = static_cast<int64_t>(words[3]),
                  .total_reserved_bytes = static_cast<int64_t>(words[4]),
                  .device_type = static_cast<uint8_t>(words[5]),
                  .device = static_cast<int8_t>(words[5] >> 8)};
      r.action = static_cast<format::MemoryAction>(words[5] >> 16 & 0xFF);
      if (kind == Word::kPlacedMemory) {
        r.memory.place = {.stream = words[6], .pool = words[7], .is_mapped = (words[5] >> 24 & 1) != 0};
      }
      break;
    case Word::kInstant:
      r.kind = format::Record::kInstant;
      r.text = name(words[1]);
      break;
    case Word::kCounter:
      r.kind = format::Record::kCounter;
      r.text = name(words[1]);
      r.value = std::bit_cast<double>(words[2]);
      break;
    case Word::kAsyncEnd:
      r.kind = format::Record::kAsyncEnd;
      r.number = static_cast<int64_t>(words[1]);
      is_event = false;
      break;
    case Word::kLost:
      r.kind = format::Record::kLost;
      r.number = static_cast<int64_t>(words[1]);
      for (size_t g = 0; g < 4; ++g) r.lost_ends[g] = static_cast<uint16_t>(words[2] >> (16 * g));
      is_event = false;
      break;
    case Word::kThreadName:
      r.kind = format::Record::kThreadName;
      r.text = name(words[1]);
      is_event = false;
      break;
    case Word::kDefine: return;
  }
  section_.add(r);
  if (is_event) ++converted_;
}

void Drain::flush_section() { section_.append_to(sections_); }

uint32_t Drain::intern(std::string_view text) {
  const size_t known = texts_.size();
  const StringId id = texts_.intern(text);
  if (id == kNoString) return 0;
  if (texts_.size() != known) new_texts_.push_back(texts_.view(id));
  return text_base_ + static_cast<uint32_t>(id);
}

uint32_t Drain::intern_op(std::string_view name_and_overload) {
  const size_t known = new_texts_.size();
  const uint32_t id = intern(name_and_overload);
  if (new_texts_.size() != known) {
    const size_t end = name_and_overload.find('\0');
    new_texts_.back() = new_texts_.back().substr(0, end);
    format::NotesWriter(overloads_).overload(id, name_and_overload.substr(end + 1));
  }
  return id;
}

// Texts that were not written yet go in front of the next chunk, whatever its kind.
void Drain::begin_payload() {
  if (!overloads_.empty()) write(format::ChunkKind::kNotes, overloads_);
  overloads_.clear();
  payload_.clear();
  format::append_definitions(payload_, first_new_text_, new_texts_);
  first_new_text_ += static_cast<uint32_t>(new_texts_.size());
  new_texts_.clear();
}

void Drain::flush_chunk() {
  if (sections_.empty() && new_texts_.empty()) return;
  begin_payload();
  payload_.append(sections_);
  write(format::ChunkKind::kEvents, payload_);
  sections_.clear();
  // Texts written so far keep their ids; those seen again get new ones.
  if (texts_.memory_bytes() > kTextTableBytes) {
    text_base_ = first_new_text_ - 1;
    texts_ = StringPool();
  }
}

void Drain::set_device_source(DeviceSource* source) {
  const std::lock_guard lock(source_mutex_);
  source_ = source;
}

void Drain::drain_device() {
  const std::lock_guard lock(source_mutex_);
  if (source_ == nullptr) return;
  source_->drain(*this);
  flush_device();
}

void Drain::checkpoint() {
  if (device_rows_.byte_count() >= kChunkBytes) flush_device();
}

void Drain::flush_device() {
  if (device_rows_.row_count() == 0) return;
  begin_payload();
  device_rows_.append_to(payload_);
  write(format::ChunkKind::kDevice, payload_);
  converted_ += device_rows_.row_count();
  device_rows_.clear();
}

void Drain::note_thread_name(ThreadBuffer* b, ThreadState& state) {
  std::string name = system_thread_name(b->system_thread_id());
  if (name.empty() || name == state.name) return;
  std::string items;
  format::NotesWriter(items).thread(Recorder::index_of(b), b->system_thread_id(), name);
  add_notes(items);
  state.name = std::move(name);
}

void Drain::write_notes() {
  std::string items;
  const ClockPair now = read_clock_pair();
  if (now.monotonic_ns - last_heartbeat_ns_ >= kHeartbeatNs) {
    last_heartbeat_ns_ = now.monotonic_ns;
    format::NotesWriter(items).clock_pair(format::PairRole::kHeartbeat, now);
  }
  std::vector<std::string> metadata;
  {
    const std::lock_guard lock(notes_mutex_);
    items.append(notes_);
    notes_.clear();
    metadata.swap(metadata_);
  }
  for (std::string& each : metadata) {
    write(format::ChunkKind::kNotes, each);
    const size_t bytes = std::exchange(each, {}).size();  // memory that the next items may take
    const std::lock_guard lock(notes_mutex_);
    metadata_bytes_ -= bytes;
  }
  if (!items.empty()) write(format::ChunkKind::kNotes, items);
}

void Drain::write(format::ChunkKind kind, std::string_view raw) {
  if (failed_) return;
  std::string error = writer_.write_chunk(kind, raw);
  if (!error.empty()) fail(std::move(error));
}

void Drain::fail(std::string reason) {
  if (failed_) return;
  failed_ = true;
  reason = "recording stopped: " + sink_->name() + ": " + reason;
  on_failure_(reason);
  try {
    std::string items;
    format::NotesWriter notes(items);
    notes.stopped(std::string_view(reason).substr(0, kMaxReasonBytes));
    notes.clock_pair(format::PairRole::kStop, read_clock_pair());
    if (writer_.write_last_notes(items).empty()) (void)writer_.finish(event_count());
    file_bytes_ = writer_.bytes_written();
  } catch (const std::exception&) {
  }
}

}  // namespace firelane::record

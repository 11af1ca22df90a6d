// For tests: .lane files made by hand, of streams of records and notes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/chunk.h"
#include "format/events.h"
#include "format/notes.h"
#include "format/testing.h"

namespace firelane::importer::test {

inline constexpr uint64_t kStart = 1'000'000;  // ticks; 2 of them a nanosecond
inline constexpr int64_t kUnix = 1'790'000'000'000'000'000;

// Records of one thread; times in ns since the start.
class StreamBuilder {
 public:
  explicit StreamBuilder(uint32_t index, uint32_t thread_id) { section_.begin(index, thread_id, kStart, kStart); }
  StreamBuilder& begin(int64_t at, uint32_t name, format::Scope scope = format::Scope::kFunction,
                       int64_t sequence = -1) {
    section_.add({.kind = sequence < 0 ? format::Record::kBegin : format::Record::kBeginSequence,
                  .scope = scope,
                  .text = name,
                  .ticks = ticks(at),
                  .number = sequence});
    return *this;
  }
  StreamBuilder& end(int64_t at, format::Record kind = format::Record::kEnd) {
    return add({.kind = kind, .ticks = ticks(at)});
  }
  StreamBuilder& number(format::Attribute key, int64_t value) {
    return add({.kind = format::Record::kAttribute, .attribute = key, .number = value});
  }
  StreamBuilder& text(format::Attribute key, uint32_t id) {
    return add({.kind = format::Record::kAttribute, .attribute = key, .text = id});
  }
  StreamBuilder& add(const format::EventRecord& record) {
    section_.add(record);
    return *this;
  }
  static uint64_t ticks(int64_t ns) { return kStart + 2 * static_cast<uint64_t>(ns); }
  void append_to(std::string& payload) const { section_.append_to(payload); }

 private:
  format::SectionWriter section_;
};

// A file: notes of the start, then whatever is added.
class LaneBuilder {
 public:
  LaneBuilder() : writer_(sink_, 1) {
    EXPECT_EQ(writer_.write_header(0xABCDEF), "");
    std::string items;
    format::NotesWriter notes(items);
    notes.process(77, TickSource::kTsc, 2e9, "box", "/usr/bin/python3 train.py");
    notes.clock_pair(format::PairRole::kStart, {.ticks = kStart, .monotonic_ns = 500, .unix_ns = kUnix});
    notes.option("record_shapes", "1");
    notes.option("with_stack", "0");
    chunk(format::ChunkKind::kNotes, items);
  }
  LaneBuilder& chunk(format::ChunkKind kind, std::string_view payload) {
    EXPECT_EQ(writer_.write_chunk(kind, payload), "");
    offsets.push_back(writer_.bytes_written());
    return *this;
  }
  LaneBuilder& events(uint32_t first, const std::vector<std::string_view>& texts,
                      const std::vector<StreamBuilder>& streams) {
    std::string payload;
    format::append_definitions(payload, first, texts);
    for (const StreamBuilder& stream : streams) stream.append_to(payload);
    return chunk(format::ChunkKind::kEvents, payload);
  }
  LaneBuilder& stop(int64_t at) {
    std::string items;
    format::NotesWriter(items).clock_pair(
        format::PairRole::kStop, {.ticks = StreamBuilder::ticks(at), .monotonic_ns = 500 + at, .unix_ns = kUnix + at});
    return chunk(format::ChunkKind::kNotes, items);
  }
  std::string finish() {
    EXPECT_EQ(writer_.finish(0), "");
    return sink_.content;
  }
  const std::string& torn() const { return sink_.content; }
  std::vector<uint64_t> offsets;  // where each chunk ends

 private:
  format::test::StringSink sink_;
  format::ChunkWriter writer_;
};

}  // namespace firelane::importer::test

// Perfetto's protobuf messages, as far as firelane writes them: field numbers of the public
// .proto files (protos/perfetto/trace), and a writer of packets that interns texts.
// tests/perfetto_subset.proto declares the same subset for an independent decoder.
#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/utf8.h"
#include "export/byte_sink.h"
#include "model/model.h"

namespace firelane::exporter::perfetto {

namespace trace {
inline constexpr uint32_t kPacket = 1;
}
namespace packet {
inline constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
                          kSequenceFlags = 13, kTrackDescriptor = 60;
inline constexpr uint32_t kStateCleared = 1, kNeedsState = 2;  // bits of sequence_flags
}  // namespace packet
namespace clock_snapshot {
inline constexpr uint32_t kClocks = 1, kClockId = 1, kTimestamp = 2;
inline constexpr uint32_t kRealtime = 1, kBoottime = 6;  // clock ids
}  // namespace clock_snapshot
namespace descriptor {
inline constexpr uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5, kCounter = 8,
                          kChildOrdering = 11, kSiblingOrderRank = 12;
inline constexpr int32_t kExplicitOrder = 3;
inline constexpr uint32_t kProcessPid = 1, kProcessName = 6;
inline constexpr uint32_t kThreadPid = 1, kThreadTid = 2, kThreadName = 5;
inline constexpr uint32_t kCounterUnit = 3;
inline constexpr int32_t kUnitBytes = 3;
}  // namespace descriptor
namespace event {
inline constexpr uint32_t kCategoryIids = 3, kDebugAnnotations = 4, kType = 9, kNameIid = 10, kTrackUuid = 11,
                          kCategories = 22, kName = 23, kCounterValue = 30, kDoubleCounterValue = 44, kFlowIds = 47,
                          kTerminatingFlowIds = 48;
inline constexpr int32_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace event
namespace annotation {
inline constexpr uint32_t kNameIid = 1, kIntValue = 4, kDoubleValue = 5, kStringValue = 6, kStringValueIid = 17;
}
namespace interned {
inline constexpr uint32_t kEventCategories = 1, kEventNames = 2, kAnnotationNames = 3, kAnnotationStrings = 29;
inline constexpr uint32_t kIid = 1, kText = 2;  // of every entry
}  // namespace interned

// Interned texts of one kind: which ones were written already.
class InternTable {
 public:
  InternTable(uint32_t field, size_t strings) : field_(field), written_(strings) {}

  // The iid of a text; its entry is added to `data` when this is its first use. 0 is no iid.
  uint64_t iid(const Model& model, StringId id, std::string& data) {
    const auto index = static_cast<uint32_t>(id);
    const uint64_t iid = uint64_t{index} + 1;
    if (!written_[index]) {
      written_[index] = true;
      add_entry(data, field_, iid, model.text(id));
    }
    return iid;
  }

  static void add_entry(std::string& data, uint32_t field, uint64_t iid, std::string_view text) {
    std::string valid;
    append_valid_utf8(valid, text);
    std::string entry;
    protozero::pbf_writer writer(entry);
    writer.add_uint64(interned::kIid, iid);
    writer.add_string(interned::kText, valid);
    protozero::pbf_writer(data).add_message(field, entry);
  }

 private:
  uint32_t field_;
  std::vector<bool> written_;
};

// Writes packets of one sequence. An event is put together in event(), annotations and interned data
// beside it, then emit() writes the packet.
class PacketWriter {
 public:
  PacketWriter(const Model& model, ByteSink& sink, uint32_t sequence)
      : model_(model),
        sink_(sink),
        names_(interned::kEventNames, model.strings.size()),
        categories_(interned::kEventCategories, model.strings.size()),
        texts_(interned::kAnnotationStrings, model.strings.size()),
        sequence_(sequence) {}

  void write_descriptor(std::string_view track_descriptor) {
    std::string body;
    protozero::pbf_writer(body).add_message(packet::kTrackDescriptor, track_descriptor.data(), track_descriptor.size());
    write_packet(std::move(body));
  }

  void write_clock_snapshot(uint64_t trace_ns, uint64_t unix_ns) {
    std::string snapshot;
    for (const auto& [id, time] :
         {std::pair{clock_snapshot::kBoottime, trace_ns}, {clock_snapshot::kRealtime, unix_ns}}) {
      std::string clock;
      protozero::pbf_writer writer(clock);
      writer.add_uint32(clock_snapshot::kClockId, id);
      writer.add_uint64(clock_snapshot::kTimestamp, time);
      protozero::pbf_writer(snapshot).add_message(clock_snapshot::kClocks, clock);
    }
    std::string body;
    protozero::pbf_writer(body).add_message(packet::kClockSnapshot, snapshot);
    write_packet(std::move(body));
  }

  protozero::pbf_writer begin_event(int32_t type, uint64_t track) {
    event_.clear();
    data_.clear();
    protozero::pbf_writer writer(event_);
    writer.add_enum(event::kType, type);
    writer.add_uint64(event::kTrackUuid, track);
    return writer;
  }
  void add_name(protozero::pbf_writer& writer, std::string_view category, StringId name) {
    if (!category.empty()) writer.add_string(event::kCategories, category.data(), category.size());
    if (name != kNoString) writer.add_uint64(event::kNameIid, names_.iid(model_, name, data_));
  }
  void add_name(protozero::pbf_writer& writer, StringId category, StringId name) {
    if (category != kNoString) writer.add_uint64(event::kCategoryIids, categories_.iid(model_, category, data_));
    if (name != kNoString) writer.add_uint64(event::kNameIid, names_.iid(model_, name, data_));
  }
  void end_event(uint64_t time_ns) {
    std::string body;
    protozero::pbf_writer writer(body);
    writer.add_uint64(packet::kTimestamp, time_ns);
    writer.add_message(packet::kTrackEvent, event_);
    if (!data_.empty()) writer.add_message(packet::kInternedData, data_);
    write_packet(std::move(body));
  }

  // Args of the event under way, for visit_host_args() and its siblings (describe/kineto_args.h).
  void number(std::string_view key, int64_t value) {
    add_annotation(key, [&](protozero::pbf_writer& w) { w.add_int64(annotation::kIntValue, value); });
  }
  void real(std::string_view key, float value) {
    add_annotation(key, [&](protozero::pbf_writer& w) { w.add_double(annotation::kDoubleValue, double{value}); });
  }
  void triple(std::string_view key, int32_t x, int32_t y, int32_t z) {
    const std::string text = "[" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + "]";
    add_annotation(key, [&](protozero::pbf_writer& w) { w.add_string(annotation::kStringValue, text); });
  }
  void text(std::string_view key, StringId value) {
    add_annotation(key, [&](protozero::pbf_writer& w) {
      w.add_uint64(annotation::kStringValueIid, texts_.iid(model_, value, data_));
    });
  }
  void word(std::string_view key, std::string_view value) {
    add_annotation(
        key, [&](protozero::pbf_writer& w) { w.add_string(annotation::kStringValue, value.data(), value.size()); });
  }
  void json(std::string_view key, StringId value) { text(key, value); }
  void object(StringId value) { text("args", value); }

  void flush() {
    sink_.write(out_);
    out_.clear();
  }

 private:
  static constexpr size_t kFlushBytes = 1 << 18;

  template <typename Fill>
  void add_annotation(std::string_view key, const Fill& fill) {
    const auto [at, added] = keys_.try_emplace(key, keys_.size() + 1);
    if (added) InternTable::add_entry(data_, interned::kAnnotationNames, at->second, key);
    std::string body;
    protozero::pbf_writer writer(body);
    writer.add_uint64(annotation::kNameIid, at->second);
    fill(writer);
    protozero::pbf_writer(event_).add_message(event::kDebugAnnotations, body);
  }

  void write_packet(std::string body) {
    protozero::pbf_writer writer(body);
    writer.add_uint32(packet::kSequenceId, sequence_);
    writer.add_uint32(packet::kSequenceFlags, first_ ? packet::kStateCleared : packet::kNeedsState);
    first_ = false;
    protozero::pbf_writer(out_).add_message(trace::kPacket, body);
    if (out_.size() >= kFlushBytes) flush();
  }

  const Model& model_;
  ByteSink& sink_;
  InternTable names_, categories_, texts_;
  std::unordered_map<std::string_view, uint64_t> keys_;  // keys are literals
  std::string event_, data_, out_;
  uint32_t sequence_;  // texts are interned in each
  bool first_ = true;
};

}  // namespace firelane::exporter::perfetto

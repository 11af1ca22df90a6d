// Helpers for the tests of this room: gzip bytes, a source read in pieces, and a model as comparable text.
#pragma once

#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "import/byte_source.h"
#include "import/load.h"
#include "model/model.h"

namespace firelane::importer {

inline std::string gzip(std::string_view text) {
  std::string out(text.size() + 4096, '\0');
  std::vector<uint8_t> level_buffer(ISAL_DEF_LVL1_DEFAULT);
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uint32_t>(text.size());
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = static_cast<uint32_t>(out.size());
  stream.level = 1;
  stream.level_buf = level_buffer.data();
  stream.level_buf_size = static_cast<uint32_t>(level_buffer.size());
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  if (isal_deflate_stateless(&stream) != COMP_OK) return "";
  out.resize(stream.total_out);
  return out;
}

// In pieces of `piece` bytes, to the end.
inline std::string read_all(ByteSource& source, size_t piece = 100) {
  std::string out;
  std::string buffer(piece, '\0');
  for (size_t got = 1; got > 0;) {
    got = source.read(buffer.data(), buffer.size());
    out.append(buffer, 0, got);
  }
  return out;
}

inline std::string random_text(size_t size) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < size) text += "event " + std::to_string(random() % 5000) + ", ";
  text.resize(size);
  return text;
}

// Everything a reader decides about a trace, one line a row.
inline std::string describe(const Model& m) {
  std::string out;
  const auto add = [&](const auto&... parts) {
    const auto piece = [&](const auto& part) {
      if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>) {
        out += std::to_string(part);
      } else {
        out += part;
      }
      out += ' ';
    };
    (piece(parts), ...);
    out += '\n';
  };
  const auto name = [&](StringId id) { return std::string(m.text(id)); };
  const auto row_name = [&](Row row) { return row == kNoRow ? std::string("-") : name(m.host_slices.name[row]); };
  for (size_t i = 0; i < m.lanes.size(); ++i) {
    add("lane", std::string(name_of(m.lanes.kind[i])), m.id_text(m.lanes.pid[i]), m.id_text(m.lanes.tid[i]),
        name(m.lanes.name[i]));
  }
  const HostSlices& host = m.host_slices;
  for (Row i = 0; i < host.size(); ++i) {
    add("host", static_cast<uint32_t>(host.lane[i]), host.start_ns[i], host.duration_ns[i], name(host.name[i]),
        name(host.category[i]), std::string(name_of(host.kind[i])), row_name(host.parent[i]));
  }
  for (Row i = 0; i < m.op_details.size(); ++i) {
    add("op", row_name(m.op_details.slice[i]), m.op_details.external_id[i], m.op_details.sequence_number[i],
        name(m.op_details.input_dims[i]), row_name(m.op_details.forward[i]));
  }
  const DeviceSlices& device = m.device_slices;
  for (Row i = 0; i < device.size(); ++i) {
    add("device", static_cast<uint32_t>(device.lane[i]), device.start_ns[i], device.duration_ns[i],
        name(device.name[i]), std::string(name_of(device.kind[i])), row_name(device.launch[i]), row_name(device.op[i]),
        device.stream[i]);
  }
  for (Row i = 0; i < m.memory_events.size(); ++i) {
    add("memory", m.memory_events.time_ns[i], m.memory_events.bytes[i], m.memory_events.address[i]);
  }
  for (Row i = 0; i < m.instants.size(); ++i) add("instant", m.instants.time_ns[i], name(m.instants.name[i]));
  for (Row i = 0; i < m.counter_samples.size(); ++i) {
    const uint32_t track = m.counter_samples.track[i];
    add("counter", m.counter_samples.time_ns[i], name(m.counter_tracks.name[track]),
        name(m.counter_tracks.series[track]), m.counter_samples.value[i]);
  }
  for (Row i = 0; i < m.flows.size(); ++i) add("flow", name(m.flows.name[i]), m.flows.from[i].row, m.flows.to[i].row);
  for (Row i = 0; i < m.steps.size(); ++i) add("step", m.steps.number[i], m.steps.duration_ns[i]);
  for (const MetadataEntry& entry : m.info.metadata) add("metadata", entry.key, entry.json);
  for (size_t i = 0; i < kStatCount; ++i) {
    if (m.losses.counts[i] > 0) add("loss", std::string(kStats[i].name), m.losses.counts[i]);
  }
  return out;
}

// The model of a trace given as bytes; an empty one, and a failed test, when it does not load.
inline Model load_bytes(std::string bytes) {
  Result<Model> loaded = load_trace_bytes(std::move(bytes), "test");
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  return loaded.ok() ? std::move(loaded).value() : Model();
}

// The model of a JSON trace given as text; an empty one, and a failed test, when it does not load.
inline Model load_text(std::string text) {
  Result<Model> loaded = load_trace_bytes(std::move(text), "test.json");
  EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  return loaded.ok() ? std::move(loaded).value() : Model();
}

}  // namespace firelane::importer

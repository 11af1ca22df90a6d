#include "import/lane/read_lane.h"

#include <algorithm>
#include <cstdio>

#include "format/chunk.h"
#include "import/decompress.h"
#include "import/json/read_json.h"
#include "import/lane/lane_rows.h"
#include "import/lane/light_rows.h"
#include "import/lane/table_rows.h"
#include "import/metadata.h"
#include "import/whole.h"

namespace firelane::importer {

bool is_lane(std::string_view begin) { return begin.starts_with(format::kLaneMagic); }

Result<RawTrace> read_lane(std::string_view file, const std::string& name, uint64_t max_content_bytes) {
  format::ChunkReader reader(file);
  FL_TRY_VOID(reader.read_header(name));
  RawTrace raw;
  raw.info.format = "Firelane";
  raw.info.origin = Origin::kFirelane;
  LaneRows rows(raw);
  std::string converted;  // a trace of another recorder, as JSON
  RawPool table_pool;     // and what JSON has no form for
  RawPart table_part;
  format::Chunk chunk;
  while (reader.next(chunk)) {
    const std::string bomb = refuse_bomb(file.size(), reader.content_bytes(), max_content_bytes);
    if (!bomb.empty()) return Error{name + ": " + bomb};
    switch (chunk.kind) {
      case format::ChunkKind::kNotes: rows.add_notes(chunk.payload); break;
      case format::ChunkKind::kEvents: rows.add_events(chunk.payload); break;
      case format::ChunkKind::kDevice: rows.add_device(chunk.payload); break;
      case format::ChunkKind::kIndex: break;
      case format::ChunkKind::kTrace: converted.append(chunk.payload); break;
      case format::ChunkKind::kTable: add_table_rows(chunk.payload, table_pool, table_part); break;
      default: ++raw.losses[Stat::kLaneUnknownChunk];
    }
  }
  rows.finish();
  if (!converted.empty()) {
    FL_TRY(RawTrace other, read_json(open_memory(std::move(converted)), name, {}));
    other.losses[Stat::kLaneChunkDamaged] += reader.damaged_chunks();
    if (reader.cut_off() || !reader.clean_end()) other.losses[Stat::kTruncated] = 1;
    other.info.content_bytes = reader.content_bytes();
    table_part.pool = static_cast<uint32_t>(other.pools.size());
    other.pools.push_back(std::move(table_pool));
    other.parts.push_back(std::move(table_part));
    return other;
  }

  raw.losses[Stat::kLaneChunkDamaged] += reader.damaged_chunks();
  if (reader.cut_off()) raw.losses[Stat::kTruncated] = 1;
  const RecorderInfo& recorder = raw.info.recorder;
  if (!reader.clean_end() || !recorder.stopped_because.empty()) raw.losses[Stat::kRecorderStoppedEarly] = 1;
  for (const RecorderInfo::Loss& loss : recorder.losses) raw.losses[Stat::kRecorderDroppedEvents] += loss.count;
  char id[40];
  std::snprintf(id, sizeof id, "\"%016llX\"", static_cast<unsigned long long>(reader.trace_id()));
  const auto named = [](const MetadataEntry& entry) { return entry.key == "trace_id"; };
  if (std::none_of(raw.info.metadata.begin(), raw.info.metadata.end(), named)) {
    raw.info.metadata.insert(raw.info.metadata.begin(), {"trace_id", id});
  }
  raw.info.content_bytes = reader.content_bytes();
  const int64_t base = raw.info.base_time_ns;
  interpret_metadata(raw.info);
  raw.info.base_time_ns = base;
  split_light(raw, rows.light_windows());
  return raw;
}

namespace {

// A .lane file is small (a few bytes an event): all of it at once.
Result<RawTrace> read_whole(std::unique_ptr<ByteSource> source, const ReadRequest& request) {
  FL_TRY(const std::string bytes, read_whole_content(*source, request));
  FL_TRY(RawTrace raw, read_lane(bytes, request.name, request.max_content_bytes));
  raw.losses.add(source->losses());
  return raw;
}

}  // namespace

Reader lane_reader() { return {"Firelane", is_lane, read_whole}; }

}  // namespace firelane::importer

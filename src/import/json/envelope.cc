#include "import/json/envelope.h"

#include <simdjson.h>

#include <algorithm>

#include "import/json/scan.h"
#include "import/json/unescape.h"

namespace firelane::importer {

namespace dom = simdjson::dom;

namespace {

constexpr size_t kFirstRead = 1 << 16;
constexpr size_t kMaxHeaderBytes = size_t{64} << 20;
constexpr size_t kMaxValueBytes = 1 << 20;

// Walks over "key": value pairs. Stops behind the "[" of traceEvents, at the end of the
// object, or where the text ends in the middle.
struct KeyWalk {
  enum class End { kEvents, kObjectEnd, kNeedMore, kBroken };
  End end = End::kNeedMore;
  size_t at = 0;            // kEvents: behind "["; kNeedMore: the key to walk again from
  bool not_a_list = false;  // traceEvents is something else
};

void keep_entry(std::string_view key, std::string_view value, std::vector<MetadataEntry>& metadata,
                LossCounts& losses) {
  if (value.size() > kMaxValueBytes) {
    ++losses[Stat::kMetadataTooLarge];
    return;
  }
  std::string json(value);
  const Repairs repairs = repair_text(json.data(), json.size());
  if (repairs.characters > 0) ++losses[Stat::kTextRepaired];
  std::string name;
  unescape_json(key, name);
  const auto same =
      std::find_if(metadata.begin(), metadata.end(), [&](const MetadataEntry& e) { return e.key == name; });
  if (same != metadata.end()) {
    same->json = std::move(json);  // the last one wins, as in every JSON reader
  } else {
    metadata.push_back({std::move(name), std::move(json)});
  }
}

KeyWalk walk_keys(std::string_view text, size_t at, std::vector<MetadataEntry>& metadata, LossCounts& losses) {
  KeyWalk walk{.at = at};
  for (;;) {
    size_t i = skip_space(text, walk.at);
    while (i < text.size() && text[i] == ',') i = skip_space(text, i + 1);
    walk.at = i;
    if (i >= text.size()) return walk;
    if (text[i] == '}') {
      walk.end = KeyWalk::End::kObjectEnd;
      walk.at = i + 1;
      return walk;
    }
    if (text[i] != '"') {
      walk.end = KeyWalk::End::kBroken;
      return walk;
    }
    const size_t key_end = value_end(text, i);
    if (key_end == kNotFound) return walk;
    const std::string_view key = text.substr(i + 1, key_end - i - 2);
    size_t colon = skip_space(text, key_end);
    if (colon >= text.size()) return walk;
    if (text[colon] != ':') {
      walk.end = KeyWalk::End::kBroken;
      return walk;
    }
    const size_t value = skip_space(text, colon + 1);
    if (value >= text.size()) return walk;
    if (key == "traceEvents") {
      walk.end = KeyWalk::End::kEvents;
      walk.not_a_list = text[value] != '[';
      walk.at = value + 1;
      return walk;
    }
    const size_t end = value_end(text, value);
    if (end == kNotFound) return walk;
    keep_entry(key, text.substr(value, end - value), metadata, losses);
    walk.at = end;
  }
}

std::string beginning_of(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 16)) shown += c >= 0x20 && c < 0x7F ? c : '.';
  return shown;
}

int64_t int_of(const dom::element& object, std::string_view key) {
  int64_t number = 0;
  return object[key].get(number) == simdjson::SUCCESS ? number : kNoNumber;
}

std::string text_of(const dom::element& object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

void read_devices(const dom::element& list, TraceInfo& info) {
  dom::array devices;
  if (list.get(devices) != simdjson::SUCCESS) return;
  for (const dom::element device : devices) {
    DeviceProperties& out = info.devices.emplace_back();
    out.id = int_of(device, "id");
    out.name = text_of(device, "name");
    out.total_memory_bytes = int_of(device, "totalGlobalMem");
    out.compute_major = int_of(device, "computeMajor");
    out.compute_minor = int_of(device, "computeMinor");
    out.multiprocessors = int_of(device, "numSms");
    if (out.multiprocessors == kNoNumber) out.multiprocessors = int_of(device, "maxComputeUnits");
    out.max_threads_per_multiprocessor = int_of(device, "maxThreadsPerMultiprocessor");
    out.registers_per_multiprocessor = int_of(device, "regsPerMultiprocessor");
    out.shared_memory_per_multiprocessor_bytes = int_of(device, "sharedMemPerMultiprocessor");
    if (out.shared_memory_per_multiprocessor_bytes == kNoNumber) {
      out.shared_memory_per_multiprocessor_bytes = int_of(device, "maxSharedMemoryPerMultiProcessor");
    }
    out.warp_size = int_of(device, "warpSize");
  }
}

}  // namespace

Result<EnvelopeStart> read_envelope_start(ByteSource& source, const std::string& name) {
  EnvelopeStart start;
  std::string text;
  const auto read_more = [&](size_t bytes) {
    const size_t had = text.size();
    text.resize(had + bytes);
    text.resize(had + source.read(text.data() + had, bytes));
    return text.size() - had;
  };
  read_more(kFirstRead);
  if (text.empty()) return Error{name + ": empty; nothing was recorded, or the program ended before it was written"};
  size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  at = skip_space(text, at);
  while (at == text.size() && text.size() < kMaxHeaderBytes && read_more(text.size()) > 0) at = skip_space(text, at);

  if (at < text.size() && text[at] == '[') {
    start.events_source = at + 1;
    start.carry = text.substr(at + 1);
    return start;
  }
  if (at >= text.size() || text[at] != '{') {
    return Error{name + ": not a trace (begins with \"" + beginning_of(text) +
                 "\"); firelane opens .lane files and the .json or .json.gz that torch.profiler exports"};
  }
  start.is_object = true;
  size_t resume = at + 1;
  for (;;) {
    const KeyWalk walk = walk_keys(text, resume, start.metadata, start.losses);
    if (walk.end == KeyWalk::End::kEvents && !walk.not_a_list) {
      start.events_source = walk.at;
      start.carry = text.substr(walk.at);
      return start;
    }
    if (walk.end == KeyWalk::End::kNeedMore && text.size() < kMaxHeaderBytes && read_more(text.size()) > 0) {
      resume = walk.at;
      continue;
    }
    if (walk.end == KeyWalk::End::kNeedMore && text.size() < kMaxHeaderBytes) {
      return Error{name + ": ends before its list of events; copy the file again, or let the program finish writing"};
    }
    return Error{name + ": JSON, but without a traceEvents list: not a Chrome or Kineto trace"};
  }
}

void read_envelope_end(std::string_view text, std::vector<MetadataEntry>& metadata, LossCounts& losses) {
  size_t at = 0;
  for (;;) {
    const KeyWalk walk = walk_keys(text, at, metadata, losses);
    if (walk.end == KeyWalk::End::kNeedMore || walk.end == KeyWalk::End::kBroken) ++losses[Stat::kTruncated];
    if (walk.end != KeyWalk::End::kEvents) return;
    ++losses[Stat::kSecondEventList];
    const size_t end = value_end(text, walk.at - 1);
    if (end == kNotFound) return;
    at = end;
  }
}

void interpret_metadata(TraceInfo& info) {
  dom::parser parser;
  for (const MetadataEntry& entry : info.metadata) {
    dom::element value;
    if (parser.parse(entry.json).get(value) != simdjson::SUCCESS) continue;
    if (entry.key == "deviceProperties") {
      read_devices(value, info);
    } else if (entry.key == "baseTimeNanoseconds") {
      int64_t number = 0;
      if (value.get(number) == simdjson::SUCCESS) info.base_time_ns = number;
    } else if (entry.key == "distributedInfo") {
      info.distributed.present = true;
      info.distributed.backend = text_of(value, "backend");
      info.distributed.rank = int_of(value, "rank");
      info.distributed.world_size = int_of(value, "world_size");
      info.distributed.nccl_version = text_of(value, "nccl_version");
    }
  }
}

}  // namespace firelane::importer

#include "import/json/envelope.h"

#include <algorithm>

#include "import/json/scan.h"
#include "import/json/unescape.h"
#include "import/metadata.h"

namespace firelane::importer {

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
  keep_metadata(std::move(name), std::move(json), metadata, losses);
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
                 "\"); firelane opens .lane files, the .json or .json.gz that torch.profiler exports, and the "
                 "traces of other tools that docs/formats lists"};
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

}  // namespace firelane::importer

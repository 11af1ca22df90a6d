#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "import/stacks/read_stacks.h"
#include "import/stacks/stack_rows.h"
#include "import/whole.h"

namespace firelane::importer {

namespace {

// "a;b;c 42" into its stack and its count; false for other lines.
bool split_line(std::string_view line, std::string_view& stack, int64_t& count) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos || space == 0) return false;
  const std::string_view digits = line.substr(space + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  stack = line.substr(0, space);
  return parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size() && count >= 0;
}

// A count is a microsecond, which is what our own export and most tools write.
constexpr int64_t kNsOfCount = 1000;

Result<RawTrace> read_lines(std::unique_ptr<ByteSource> content, const ReadRequest& request) {
  FL_TRY(const std::string text, read_whole_content(*content, request));
  RawTrace raw;
  raw.info.content_bytes = text.size();
  StackRows rows(raw);
  rows.begin_lane("stacks");
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(std::string_view(text).substr(at, end - at));
    at = end + 1;
  }
  // Sorted, stacks that begin alike are neighbours, and what they share is one slice.
  std::stable_sort(lines.begin(), lines.end());
  std::vector<StringId> frames;
  for (const std::string_view line : lines) {
    std::string_view stack;
    int64_t count = 0;
    if (!split_line(line, stack, count)) {
      ++rows.losses()[Stat::kLineMalformed];
      continue;
    }
    if (count > kMaxDurationNs / 4 / kNsOfCount || rows.now_ns() > kMaxDurationNs / 4) {
      ++rows.losses()[Stat::kSizeOutOfRange];
      continue;
    }
    frames.clear();
    for (size_t at = 0; at <= stack.size();) {
      const size_t end = std::min(stack.find(';', at), stack.size());
      frames.push_back(rows.frame(stack.substr(at, end - at)));
      at = end + 1;
    }
    rows.sample(frames, count * kNsOfCount);
  }
  rows.end_lane(rows.now_ns(), false);
  if (rows.empty()) return Error{request.name + ": collapsed stacks without a stack"};
  raw.losses.add(content->losses());
  raw.info.format = "collapsed stacks";
  raw.info.origin = Origin::kStacks;
  return raw;
}

}  // namespace

// All lines that are there to look at have the form, and one of them has more than one frame.
bool is_collapsed(std::string_view begin) {
  if (begin.starts_with('{') || begin.starts_with('[') || begin.starts_with('"')) return false;
  bool has_frames = false;
  for (size_t at = 0; at < begin.size();) {
    const size_t end = begin.find('\n', at);
    const std::string_view line = begin.substr(at, end == std::string_view::npos ? end : end - at);
    const bool is_text = std::all_of(line.begin(), line.end(), [](char c) {
      return static_cast<unsigned char>(c) >= ' ' || c == '\t' || c == '\r';
    });
    if (!is_text) return false;
    // The last line may be longer than what is there.
    const bool is_cut = end == std::string_view::npos && begin.size() >= kSniffBytes;
    std::string_view stack;
    int64_t count = 0;
    if (!line.empty() && !is_cut && !split_line(line, stack, count)) return false;
    has_frames = has_frames || (is_cut ? line : stack).find(';') != std::string_view::npos;
    if (end == std::string_view::npos) break;
    at = end + 1;
  }
  return has_frames;
}

Reader collapsed_reader() { return {"collapsed stacks", is_collapsed, read_lines}; }

}  // namespace firelane::importer

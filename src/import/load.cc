#include "import/load.h"

#include <algorithm>
#include <array>
#include <thread>

#include "import/byte_source.h"
#include "import/gzip_source.h"
#include "import/json/read_json.h"
#include "import/lane/read_lane.h"
#include "model/raw.h"

namespace firelane::importer {

namespace {

constexpr size_t kMinChunkBytes = size_t{1} << 18;
constexpr size_t kMaxChunkBytes = size_t{16} << 20;
constexpr uint64_t kUsualGzipRatio = 14;

unsigned thread_count(unsigned asked) { return asked != 0 ? asked : std::max(1u, std::thread::hardware_concurrency()); }

std::string_view begin_of(const ByteSource& source, std::array<char, 16>& buffer) {
  const auto got = source.read_at(0, buffer.data(), buffer.size());
  return {buffer.data(), got.ok() ? got.value() : 0};
}

// Formats that people mistake for traces, or that have to be unpacked first.
std::string foreign_format(std::string_view begin) {
  if (begin.starts_with("\x28\xB5\x2F\xFD")) return "compressed with zstd; unpack it first: zstd -d";
  if (begin.starts_with("PK\x03\x04")) return "a zip archive; unpack it first, then name the trace in it";
  if (begin.starts_with("BZh")) return "compressed with bzip2; unpack it first: bunzip2";
  if (begin.starts_with("\xFD"
                        "7zXZ"))
    return "compressed with xz; unpack it first: unxz";
  if (begin.starts_with("SQLite format 3"))
    return "an SQLite database, not a trace (Nsight Systems files are not read)";
  if (begin.starts_with("\x80\x02") || begin.starts_with("\x80\x04") || begin.starts_with("\x80\x05")) {
    return "a Python pickle (a memory snapshot?), not a trace";
  }
  return "";
}

// A .lane file is small (a few bytes an event): all of it at once.
Result<RawTrace> read_whole_lane(ByteSource& source, const std::string& name, const LoadOptions& options) {
  std::string bytes;
  constexpr size_t kPiece = size_t{4} << 20;
  for (size_t got = kPiece; got == kPiece;) {
    const size_t at = bytes.size();
    bytes.resize(at + kPiece);
    got = source.read(bytes.data() + at, kPiece);
    bytes.resize(at + got);
  }
  if (!source.fatal().empty()) return Error{name + ": " + source.fatal()};
  if (options.progress) options.progress(source.consumed_bytes(), source.total_bytes());
  FL_TRY(RawTrace raw, read_lane(bytes, name, options.max_content_bytes));
  raw.losses.add(source.losses());
  return raw;
}

Result<Model> load(std::unique_ptr<ByteSource> file, const std::string& name, const LoadOptions& options) {
  std::array<char, 16> buffer{};
  const uint64_t file_bytes = file->total_bytes();
  if (file_bytes == 0) return Error{name + ": empty; nothing was recorded, or the program ended before it was written"};
  std::string_view begin = begin_of(*file, buffer);
  const bool compressed = is_gzip(begin.data(), begin.size());
  std::unique_ptr<ByteSource> content = std::move(file);
  if (compressed) {
    content = open_gzip(std::move(content), options.max_content_bytes);
    begin = begin_of(*content, buffer);
    if (begin.empty()) return Error{name + ": gzip, but nothing can be decompressed; copy the file again"};
  }
  const std::string foreign = foreign_format(begin);
  if (!foreign.empty()) return Error{name + ": " + foreign};

  const unsigned threads = thread_count(options.threads);
  if (is_lane(begin)) {
    FL_TRY(RawTrace lane, read_whole_lane(*content, name, options));
    lane.info.path = name;
    lane.info.file_bytes = file_bytes;
    lane.info.compressed = compressed;
    return assemble(std::move(lane), threads);
  }
  const uint64_t expected_bytes = compressed ? file_bytes * kUsualGzipRatio : file_bytes;
  const JsonOptions json_options{
      .threads = threads,
      .chunk_bytes = std::clamp<size_t>(expected_bytes / (size_t{threads} * 64), kMinChunkBytes, kMaxChunkBytes),
      .progress = options.progress,
  };
  FL_TRY(RawTrace raw, read_json(std::move(content), name, json_options));
  raw.info.path = name;
  raw.info.file_bytes = file_bytes;
  raw.info.compressed = compressed;
  return assemble(std::move(raw), threads);
}

}  // namespace

Result<Model> load_trace(const std::string& path, const LoadOptions& options) {
  FL_TRY(std::unique_ptr<ByteSource> file, open_file(path));
  return load(std::move(file), path == "-" ? "standard input" : path, options);
}

Result<Model> load_trace_bytes(std::string bytes, const std::string& name, const LoadOptions& options) {
  return load(open_memory(std::move(bytes)), name, options);
}

}  // namespace firelane::importer

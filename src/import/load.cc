#include "import/load.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <thread>

#include "import/decompress.h"
#include "import/lane/light_ops.h"
#include "model/raw.h"

namespace firelane::importer {

namespace {

unsigned thread_count(unsigned asked) { return asked != 0 ? asked : std::max(1u, std::thread::hardware_concurrency()); }

std::string_view begin_of(const ByteSource& source, std::array<char, 16>& buffer) {
  const auto got = source.read_at(0, buffer.data(), buffer.size());
  return {buffer.data(), got.ok() ? got.value() : 0};
}

// Formats that people mistake for traces, or that have to be unpacked first.
std::string foreign_format(std::string_view begin) {
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

constexpr std::string_view kLightSuffix = "@light";

Result<Model> assemble_light(RawTrace raw, const std::string& name, unsigned threads) {
  if (raw.info.light.is_light) return assemble(std::move(raw), threads);  // no full steps in it
  if (raw.light == nullptr) return Error{name + ": has no light steps; record some with firelane record --light 5"};
  RawTrace light = std::move(*raw.light);
  light.info.path = raw.info.path + std::string(kLightSuffix);
  light.info.file_bytes = raw.info.file_bytes;
  light.info.compression = raw.info.compression;
  const Model full = assemble(std::move(raw), threads);
  add_light_ops(light, full);
  return assemble(std::move(light), threads);
}

}  // namespace

Result<Model> load_content(std::unique_ptr<ByteSource> file, const std::string& name, const LoadOptions& options,
                           std::span<const Reader> readers) {
  std::array<char, kSniffBytes> buffer{};
  const uint64_t file_bytes = file->total_bytes();
  if (file_bytes == 0) return Error{name + ": empty; nothing was recorded, or the program ended before it was written"};
  std::string_view begin = begin_of(*file, buffer);
  std::unique_ptr<ByteSource> content = std::move(file);
  const Compression* const compression = find_compression(begin);
  if (compression != nullptr) {
    content = compression->open(std::move(content), options.max_content_bytes);
    begin = begin_of(*content, buffer);
    if (begin.empty()) {
      return Error{name + ": " + std::string(compression->name) +
                   ", but nothing can be decompressed; copy the file again"};
    }
  }
  const std::string foreign = foreign_format(begin);
  if (!foreign.empty()) return Error{name + ": " + foreign};
  const auto reader =
      std::find_if(readers.begin(), readers.end(), [&](const Reader& each) { return each.sniff(begin); });
  if (reader == readers.end()) return Error{name + ": not a trace in a format that Firelane reads"};

  const unsigned threads = thread_count(options.threads);
  FL_TRY(RawTrace raw, reader->read(std::move(content), {.name = name,
                                                         .threads = threads,
                                                         .file_bytes = file_bytes,
                                                         .is_compressed = compression != nullptr,
                                                         .max_content_bytes = options.max_content_bytes,
                                                         .progress = options.progress}));
  raw.info.path = name;
  raw.info.file_bytes = file_bytes;
  if (compression != nullptr) raw.info.compression = compression->name;
  if (options.light_steps) return assemble_light(std::move(raw), name, threads);
  return assemble(std::move(raw), threads);
}

Result<Model> load_trace(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  if (path.ends_with(kLightSuffix) && !std::filesystem::exists(path, error)) {
    LoadOptions of_light = options;
    of_light.light_steps = true;
    return load_trace(path.substr(0, path.size() - kLightSuffix.size()), of_light);
  }
  FL_TRY(std::unique_ptr<ByteSource> file, open_file(path));
  return load_content(std::move(file), path == "-" ? "standard input" : path, options);
}

Result<Model> load_trace_bytes(std::string bytes, const std::string& name, const LoadOptions& options) {
  return load_content(open_memory(std::move(bytes)), name, options);
}

}  // namespace firelane::importer

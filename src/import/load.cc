#include "import/load.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <thread>

#include "import/decompress.h"
#include "import/dumps/join_snapshot.h"
#include "import/execution/read_execution.h"
#include "import/lane/light_ops.h"
#include "import/xplane/read_xplane.h"
#include "model/raw.h"

namespace firelane::importer {

namespace {

unsigned thread_count(unsigned asked) { return asked != 0 ? asked : std::max(1u, std::thread::hardware_concurrency()); }

std::string_view begin_of(const ByteSource& source, std::array<char, kSniffBytes>& buffer) {
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
  return "";
}

// Reports of Nsight Systems are read by nsys alone. They are known by their names: their bytes are not documented.
std::string convert_first(const std::string& name) {
  for (const std::string_view ending : {".nsys-rep", ".qdrep", ".qdstrm"}) {
    if (!name.ends_with(ending)) continue;
    const size_t slash = name.rfind('/');
    const std::string stem = name.substr(0, name.size() - ending.size());
    const std::string file = slash == std::string::npos ? stem : stem.substr(slash + 1);
    if (ending == ".qdstrm") return "an unfinished recording of Nsight Systems; import it first: nsys import " + name;
    return "a report of Nsight Systems; convert it first: nsys export --type sqlite --output " + file + ".sqlite " +
           name;
  }
  return "";
}

constexpr std::string_view kLightSuffix = "@light";

// REQUIRES: `light` was split off a file whose full steps are `full`.
Model assemble_light(RawTrace light, const Model& full, unsigned threads) {
  light.info.path = full.info.path + std::string(kLightSuffix);
  light.info.file_bytes = full.info.file_bytes;
  light.info.compression = full.info.compression;
  add_light_ops(light, full);
  return assemble(std::move(light), threads);
}

Result<Model> assemble_light_alone(RawTrace raw, const std::string& name, unsigned threads) {
  if (raw.info.light.is_light) return assemble(std::move(raw), threads);  // no full steps in it
  const std::shared_ptr<RawTrace> light = std::move(raw.light);
  if (light == nullptr) return Error{name + ": has no light steps; record some with firelane record --light 5"};
  return assemble_light(std::move(*light), assemble(std::move(raw), threads), threads);
}

}  // namespace

Result<Model> load_content(std::unique_ptr<ByteSource> file, const std::string& name, const LoadOptions& options,
                           std::span<const Reader> readers) {
  const std::string unconverted = convert_first(name);
  if (!unconverted.empty()) return Error{name + ": " + unconverted};
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
  if (options.light_steps) {
    if (!options.snapshot.empty() || !options.execution_trace.empty()) {
      return Error{name + ": other files are joined to the full steps, not to the light steps"};
    }
    return assemble_light_alone(std::move(raw), name, threads);
  }
  if (!options.snapshot.empty()) FL_TRY_VOID(join_snapshot(options.snapshot, raw));
  const std::shared_ptr<RawTrace> light = std::move(raw.light);
  Model model = assemble(std::move(raw), threads);
  if (light != nullptr) {
    model.light = std::make_shared<const Model>(assemble_light(std::move(*light), model, threads));
  }
  if (!options.execution_trace.empty()) {
    FL_TRY(const ExecutionTrace execution, load_execution_trace(options.execution_trace));
    FL_TRY_VOID(join_execution_trace(execution, options.execution_trace, model));
  }
  return model;
}

namespace {

// The XPlane files of a run, one a host: in the folder itself, or in the last run below it (plugins/profile/DATE).
std::vector<std::string> hosts_of_run(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code trouble;
  std::vector<std::string> found;
  const auto look_in = [&](const fs::path& folder) {
    for (fs::directory_iterator at(folder, trouble), end; !trouble && at != end; at.increment(trouble)) {
      if (at->path().string().ends_with(".xplane.pb")) found.push_back(at->path().string());
    }
  };
  look_in(path);
  if (found.empty()) {
    fs::path last;
    for (fs::directory_iterator at(fs::path(path) / "plugins" / "profile", trouble), end; !trouble && at != end;
         at.increment(trouble)) {
      last = std::max(last, at->path());
    }
    if (!last.empty()) look_in(last);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<Model> load_run(const std::string& path, const std::vector<std::string>& hosts, const LoadOptions& options) {
  if (!options.snapshot.empty() || !options.execution_trace.empty()) {
    return Error{path +
                 ": a folder of XPlane files; execution traces and memory snapshots are joined to traces of torch"};
  }
  std::vector<XPlaneFile> files;
  uint64_t bytes = 0;
  for (const std::string& host : hosts) {
    FL_TRY(std::unique_ptr<ByteSource> file, open_file(host));
    bytes += file->total_bytes();
    const uint64_t file_bytes = file->total_bytes();
    files.push_back({.request = {.name = host, .threads = thread_count(options.threads), .file_bytes = file_bytes},
                     .content = std::move(file)});
  }
  FL_TRY(RawTrace raw, read_xplane(files));
  raw.info.path = path;
  raw.info.file_bytes = bytes;
  return assemble(std::move(raw), thread_count(options.threads));
}

}  // namespace

Result<Model> load_trace(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  if (path.ends_with(kLightSuffix) && !std::filesystem::exists(path, error)) {
    LoadOptions of_light = options;
    of_light.light_steps = true;
    return load_trace(path.substr(0, path.size() - kLightSuffix.size()), of_light);
  }
  if (const std::vector<std::string> hosts = hosts_of_run(path); !hosts.empty()) return load_run(path, hosts, options);
  FL_TRY(std::unique_ptr<ByteSource> file, open_file(path));
  return load_content(std::move(file), path == "-" ? "standard input" : path, options);
}

Result<Model> load_trace_bytes(std::string bytes, const std::string& name, const LoadOptions& options) {
  return load_content(open_memory(std::move(bytes)), name, options);
}

}  // namespace firelane::importer

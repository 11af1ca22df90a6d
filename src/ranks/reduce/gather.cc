#include "ranks/reduce/gather.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "ranks/part/map.h"
#include "ranks/part/part_file.h"

namespace firelane::ranks {

namespace {

namespace fs = std::filesystem;

bool starts_as_part(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string magic(kPartMagic.size(), '\0');
  stream.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  return stream && magic == kPartMagic;
}

bool has_ending(const std::string& name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

// A kept part that is still good: not older than its trace.
bool is_fresh(const std::string& part, const std::string& trace) {
  std::error_code error;
  const auto made = fs::last_write_time(part, error);
  if (error) return false;
  const auto recorded = fs::last_write_time(trace, error);
  return !error && made >= recorded && starts_as_part(part);
}

Result<Part> part_of(const std::string& path, const GatherOptions& options, unsigned threads) {
  if (starts_as_part(path)) return read_part(path);
  const std::string kept = path + std::string(kPartEnding);
  if ((options.keep_parts || options.use_parts) && is_fresh(kept, path)) {
    Result<Part> part = read_part(kept);
    if (part.ok()) return part;  // one of another version is made again
  }
  FL_TRY(Model model, options.load(path, threads));
  Part part = map_trace(StudiedTrace(std::move(model)));
  if (options.keep_parts) FL_TRY_VOID(write_part(part, kept));
  return part;
}

}  // namespace

Result<std::vector<std::string>> find_rank_files(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    std::error_code error;
    if (!fs::is_directory(name, error)) {
      if (!fs::exists(name, error)) return Error{name + ": no such file"};
      out.push_back(name);
      continue;
    }
    std::vector<std::string> traces;
    std::vector<std::string> parts;
    constexpr int kMostDepth = 3;
    for (fs::recursive_directory_iterator at(name, fs::directory_options::skip_permission_denied, error), end;
         !error && at != end; at.increment(error)) {
      if (at.depth() >= kMostDepth) at.disable_recursion_pending();
      std::error_code ignored;
      if (!at->is_regular_file(ignored)) continue;
      const std::string path = at->path().string();
      if (has_ending(path, {".lane", ".json", ".json.gz", ".json.zst"})) traces.push_back(path);
      if (has_ending(path, {kPartEnding})) parts.push_back(path);
    }
    if (traces.empty() && parts.empty()) {
      return Error{
          name + ": no trace in this folder (.lane, .json, .json.gz, .part); record one per rank with firelane record"};
    }
    std::sort(traces.begin(), traces.end());
    std::erase_if(parts, [&](const std::string& part) {
      const std::string trace = part.substr(0, part.size() - kPartEnding.size());
      return std::binary_search(traces.begin(), traces.end(), trace);
    });
    traces.insert(traces.end(), parts.begin(), parts.end());
    std::sort(traces.begin(), traces.end());
    out.insert(out.end(), traces.begin(), traces.end());
  }
  return out;
}

Result<void> gather(std::vector<std::string> files, const GatherOptions& options, Intake& intake) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const auto workers = static_cast<unsigned>(
      std::min<size_t>(options.workers == 0 ? cores : options.workers, std::max<size_t>(1, files.size())));
  const unsigned threads = std::max(1u, cores / workers);
  // The largest first: the last ones to end are short.
  std::vector<std::pair<uintmax_t, std::string>> ordered;
  for (std::string& file : files) {
    std::error_code error;
    const uintmax_t bytes = fs::file_size(file, error);
    ordered.emplace_back(error ? 0 : bytes, std::move(file));
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.first > b.first; });

  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;  // of what follows
  size_t done = 0;
  std::vector<std::pair<std::string, std::string>> errors;  // file, message
  const auto work = [&] {
    for (size_t i = next++; i < ordered.size() && !failed; i = next++) {
      Result<Part> part = part_of(ordered[i].second, options, threads);
      // A file that holds neither collectives nor a rank (a configuration, a table) is no rank's trace.
      const bool other = part.ok() && part.value().rank < 0 && part.value().collectives.size() == 0;
      const std::string why = !part.ok() ? part.error().message
                              : other    ? ordered[i].second + ": has neither a rank nor collectives"
                                         : "";
      if (why.empty()) intake.add(std::move(part).value());
      const std::lock_guard lock(mutex);
      ++done;
      if (!why.empty() && options.skip_others) {
        if (options.skipped) options.skipped(why);
      } else if (!part.ok()) {
        errors.emplace_back(ordered[i].second, part.error().message);
        failed = true;
      } else if (other) {
        errors.emplace_back(ordered[i].second,
                            why + "; is it a trace of a rank? Put the number into its name, as in rank3.json");
        failed = true;
      }
      if (options.progress) options.progress(done, ordered.size());
    }
  };
  std::vector<std::thread> running;
  for (unsigned i = 1; i < workers; ++i) running.emplace_back(work);
  work();
  for (std::thread& thread : running) thread.join();
  if (errors.empty()) return {};
  return Error{std::min_element(errors.begin(), errors.end())->second};
}

}  // namespace firelane::ranks

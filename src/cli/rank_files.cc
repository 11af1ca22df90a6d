#include "cli/rank_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/shell_quoted.h"
#include "base/visible_text.h"
#include "cli/flight_files.h"
#include "import/load.h"
#include "ranks/reduce/gather.h"

namespace firelane::cli {

bool is_job_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  for (fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end; at.increment(error)) {
    if (at->path().string().ends_with(".xplane.pb")) return false;
  }
  return true;
}

Result<RankFiles> find_job_files(const std::vector<std::string>& names) {
  RankFiles out{.dumps = find_dumps(names)};
  Result<std::vector<std::string>> files = ranks::find_rank_files(names);
  if (!files.ok() && out.dumps.empty()) return files.error();
  if (files.ok()) out.traces = std::move(files).value();
  std::erase_if(out.traces,
                [&](const std::string& file) { return std::binary_search(out.dumps.begin(), out.dumps.end(), file); });
  return out;
}

std::vector<std::string> files_in(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> out;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    out.push_back(at->path().string());
  }
  if (error) return {path};
  std::sort(out.begin(), out.end());
  return out;
}

namespace {

Result<void> add_matches(const std::string& path, ranks::ShuffledMatches& out) {
  if (path.empty()) return {};
  for (const std::string& file : files_in(path)) {
    FL_TRY(const std::string frames, read_whole(file));
    FL_TRY_VOID(out.add(frames, file));
  }
  return {};
}

}  // namespace

Result<std::string> read_whole(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) return Error{path + ": cannot be read"};
  return content;
}

Result<std::shared_ptr<const ranks::StudiedJob>> open_job(const std::vector<std::string>& names,
                                                          const RankFilesOptions& options) {
  FL_TRY(RankFiles found, find_job_files(names));
  if (found.traces.empty()) {
    return Error{names[0] + ": only flight recorder dumps, no trace; firelane hangs " + shell_quoted(names[0]) +
                 " shows which rank holds up which"};
  }
  // A folder may hold other files; what the user names must be a trace or a dump.
  std::error_code error;
  const bool only_folders = std::all_of(
      names.begin(), names.end(), [&](const std::string& name) { return std::filesystem::is_directory(name, error); });
  FL_TRY(const std::vector<FlightLog> logs, load_logs(found.dumps, only_folders));
  ranks::GatherOptions gather{
      .load = [](const std::string& path,
                 unsigned threads) { return importer::load_trace(path, {.threads = threads}); },
      .workers = options.workers,
      .keep_parts = options.keep_parts,
      .use_parts = options.use_parts,
      .skip_others = only_folders,
      .skipped = [](const std::string& why) { fmt::print(stderr, "firelane: skipped: {}\n", visible_text(why)); }};
  const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  const auto begun = std::chrono::steady_clock::now();
  bool drawn = false;
  if (on_terminal) {
    gather.progress = [&](size_t done, size_t total) {
      if (std::chrono::steady_clock::now() - begun < std::chrono::seconds(1)) return;
      drawn = true;
      fmt::print(stderr, "\rranks: {} of {}\x1b[K", done, total);
      std::fflush(stderr);
    };
  }
  auto intake = std::make_shared<ranks::Intake>();
  intake->ranks_per_host = options.ranks_per_host;
  FL_TRY_VOID(add_matches(options.matches, intake->matched));
  const Result<void> gathered = ranks::gather(std::move(found.traces), gather, *intake);
  if (drawn) fmt::print(stderr, "\r\x1b[K");
  FL_TRY_VOID(gathered);
  if (intake->ranks.empty()) {
    return Error{names[0] +
                 ": no trace of a rank in this folder; record one per rank with firelane record -- torchrun ..."};
  }
  return ranks::study_job(std::move(intake), logs);
}

std::vector<std::string> traces_of_ranks(const ranks::StudiedJob& job, const std::vector<std::string>& names) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  std::error_code error;
  for (const ranks::RankRows& rank : job.intake.ranks) {
    const fs::path path = rank.part.path;
    std::string& found = out.emplace_back();
    if (fs::is_regular_file(path, error)) found = path.string();
    for (size_t i = 0; i < names.size() && found.empty(); ++i) {
      const fs::path beside = fs::path(names[i]) / path.filename();
      if (fs::is_regular_file(beside, error)) found = beside.string();
    }
  }
  return out;
}

}  // namespace firelane::cli

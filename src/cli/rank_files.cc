#include "cli/rank_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/visible_text.h"
#include "import/load.h"
#include "ranks/reduce/gather.h"

namespace firelane::cli {

Result<ranks::Reduction> open_job(const std::vector<std::string>& names, const RankFilesOptions& options) {
  FL_TRY(std::vector<std::string> files, ranks::find_rank_files(names));
  std::error_code error;
  ranks::GatherOptions gather{
      .load = [](const std::string& path,
                 unsigned threads) { return importer::load_trace(path, {.threads = threads}); },
      .workers = options.workers,
      .keep_parts = options.keep_parts,
      // A folder may hold other files; what the user names must be a trace.
      .skip_others = std::all_of(names.begin(), names.end(),
                                 [&](const std::string& name) { return std::filesystem::is_directory(name, error); }),
      .skipped = [](const std::string& why) { fmt::print(stderr, "firelane: left out: {}\n", visible_text(why)); }};
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
  ranks::Intake intake;
  const Result<void> gathered = ranks::gather(std::move(files), gather, intake);
  if (drawn) fmt::print(stderr, "\r\x1b[K");
  FL_TRY_VOID(gathered);
  if (intake.ranks.empty()) {
    return Error{names[0] +
                 ": no trace of a rank in this folder; record one a rank with firelane record -- torchrun ..."};
  }
  return ranks::reduce(intake);
}

}  // namespace firelane::cli

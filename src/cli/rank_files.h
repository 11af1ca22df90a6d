// Opens the traces or parts of a job: `firelane ranks`, and `diagnose`, `view`, `report` and `export` of a folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ranks/reduce/studied_job.h"

namespace firelane::cli {

struct RankFilesOptions {
  bool keep_parts = false;
  bool use_parts = false;  // that were kept; without keeping others
  uint32_t workers = 0;
  std::string matches;          // what `ranks match` wrote, or a folder of it; "" none
  uint32_t ranks_per_host = 0;  // of traces that do not name their hosts; 0 not known
};

// A folder that holds a job and not one trace in several files (an xplane folder is one trace).
bool is_job_folder(const std::string& path);

struct RankFiles {
  std::vector<std::string> traces;  // and parts
  std::vector<std::string> dumps;   // of flight recorders
};
// What names stand for: files, or folders of them.
Result<RankFiles> find_job_files(const std::vector<std::string>& names);

// Names are traces, parts, dumps of flight recorders beside them, or folders; progress goes to standard error.
Result<std::shared_ptr<const ranks::StudiedJob>> open_job(const std::vector<std::string>& names,
                                                          const RankFilesOptions& options = {});

Result<std::string> read_whole(const std::string& path);
// The files of a folder in order of their names, else the file itself: slices, matches.
std::vector<std::string> files_in(const std::string& path);

// By rank (index) where its trace is: as its part says, or of that name in one of the folders; "" when it is not here.
std::vector<std::string> traces_of_ranks(const ranks::StudiedJob& job, const std::vector<std::string>& names);

}  // namespace firelane::cli

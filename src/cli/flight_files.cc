#include "cli/flight_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "base/parallel.h"
#include "import/dumps/flight.h"

namespace firelane::cli {

namespace fs = std::filesystem;

bool may_be_dump(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string begin(256, '\0');
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(std::max<std::streamsize>(0, stream.gcount())));
  constexpr char kPickle = '\x80';
  constexpr char kLatestProtocol = 5;
  if (begin.size() > 2 && begin[0] == kPickle && begin[1] >= 2 && begin[1] <= kLatestProtocol) return true;
  return importer::may_be_flight_json(begin);
}

std::vector<std::string> find_dumps(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    std::error_code error;
    if (!fs::is_directory(name, error)) {
      if (may_be_dump(name)) out.push_back(name);
      continue;
    }
    constexpr int kMostDepth = 3;  // as for traces
    for (fs::recursive_directory_iterator at(name, fs::directory_options::skip_permission_denied, error), end;
         !error && at != end; at.increment(error)) {
      if (at.depth() >= kMostDepth) at.disable_recursion_pending();
      std::error_code ignored;
      if (at->is_regular_file(ignored) && may_be_dump(at->path().string())) out.push_back(at->path().string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::vector<FlightLog>> load_logs(const std::vector<std::string>& files, bool skip_others) {
  std::vector<std::optional<Result<FlightLog>>> loaded(files.size());
  const auto load = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) loaded[i] = importer::load_flight_log(files[i]);
  };
  parallel_ranges(files.size(), std::thread::hardware_concurrency(), load, 1);
  std::vector<FlightLog> logs;
  std::map<int64_t, std::string> file_of_rank;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!loaded[i]->ok() && skip_others) continue;
    if (!loaded[i]->ok()) return loaded[i]->error();
    FlightLog log = std::move(*loaded[i]).value();
    if (log.rank == kNoNumber)
      return Error{files[i] +
                   ": does not say which rank it is of; give the file a name that ends with the rank, as "
                   "nccl_trace_rank_3"};
    const auto [same, is_new] = file_of_rank.try_emplace(log.rank, files[i]);
    if (!is_new)
      return Error{files[i] + ": rank " + std::to_string(log.rank) + " again, after " + same->second +
                   "; leave one of them out"};
    logs.push_back(std::move(log));
  }
  return logs;
}

}  // namespace firelane::cli

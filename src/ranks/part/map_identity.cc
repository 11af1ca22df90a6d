#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "ranks/part/map_pieces.h"

namespace firelane::ranks {

namespace {

// "run_rank12.json.gz", "trace.r3.lane", "rank-7/trace.json": the number after the last "rank".
int64_t rank_in_name(const std::string& path) {
  std::string lower(path);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  for (size_t at = lower.rfind("rank"); at != std::string::npos && at > 0; at = lower.rfind("rank", at - 1)) {
    size_t digits = at + 4;
    while (digits < lower.size() && (lower[digits] == '_' || lower[digits] == '-' || lower[digits] == '.')) ++digits;
    int64_t rank = -1;
    const char* const end = lower.data() + lower.size();
    if (std::from_chars(lower.data() + digits, end, rank).ec == std::errc{} && rank >= 0) return rank;
  }
  return -1;
}

// tensorboard_trace_handler calls its files HOST_PID.TIME.pt.trace.json.
std::string host_in_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const size_t mark = name.find(".pt.trace.json");
  const size_t underscore = name.find('_');
  if (mark == std::string::npos || underscore == std::string::npos || underscore == 0) return "";
  const size_t dot = name.find('.', underscore);
  const std::string process = name.substr(underscore + 1, dot - underscore - 1);
  const bool all_digits = !process.empty() && std::all_of(process.begin(), process.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  return all_digits ? name.substr(0, underscore) : "";
}

}  // namespace

void map_identity(const Model& model, Part& part) {
  const TraceInfo& info = model.info;
  part.path = info.path;
  part.format = info.format;
  part.host = info.recorder.host_name;
  part.backend = info.distributed.backend;
  part.nccl_version = info.distributed.nccl_version;
  if (info.distributed.rank >= 0) part.rank = info.distributed.rank;
  if (info.distributed.world_size > 0) part.world_size = info.distributed.world_size;
  // The size of the largest group is that of the job where world_size is the number of hosts.
  for (const ProcessGroup& group : info.distributed.groups) part.world_size = std::max(part.world_size, group.size);
  if (const MetadataEntry* host = model.find_metadata("host_name"); part.host.empty() && host != nullptr) {
    part.host = host->text;
  }
  if (part.rank < 0) part.rank = rank_in_name(info.path);
  if (part.host.empty()) part.host = host_in_name(info.path);
  if (!info.devices.empty()) {
    part.device = info.devices[0].name;
    part.capacity_bytes = info.devices[0].total_memory_bytes > 0 ? info.devices[0].total_memory_bytes : -1;
  }
  part.duration_ns = info.duration_ns;
  // Times of programs are Unix time; of others the start says nothing.
  constexpr int64_t kYear2001 = 1'000'000'000'000'000'000;
  const int64_t start = info.start_ns + info.base_time_ns;
  if (start > kYear2001) part.unix_start_ns = start;
  for (size_t i = 0; i < kStatCount; ++i) {
    if (model.losses.counts[i] > 0 && kStats[i].severity == Severity::kDataLoss) {
      part.losses.emplace_back(std::string(kStats[i].name), static_cast<int64_t>(model.losses.counts[i]));
    }
  }
}

}  // namespace firelane::ranks

#include "import/nsight/nvtx_ranges.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "import/nsight/nvtx_text.h"
#include "import/sqlite/row_times.h"

namespace firelane::importer {

namespace {

// eventType of NVTX_EVENTS
constexpr int64_t kNvtxMark = 34;
constexpr int64_t kPushPop = 59;
constexpr int64_t kStartEnd = 60;
constexpr int64_t kDomainName = 75;

// The number of a key in the JSON of a payload.
int64_t payload_number(std::string_view json, std::string_view key) {
  const size_t at = json.find("\"" + std::string(key) + "\"");
  if (at == std::string_view::npos) return kNoNumber;
  size_t from = at + key.size() + 2;
  while (from < json.size() && (json[from] == ':' || json[from] == ' ' || json[from] == '"')) ++from;
  int64_t number = 0;
  const auto parsed = std::from_chars(json.data() + from, json.data() + json.size(), number);
  return parsed.ec == std::errc{} ? number : kNoNumber;
}

}  // namespace

// Ranges of NVTX: operators of PyTorch, the user's own, and NCCL's calls in a domain of their own.
uint64_t NvtxRanges::read() {
  constexpr std::string_view kTable = "NVTX_EVENTS";
  uint64_t rows = 0;
  if (!database_.has_table(kTable)) {
    ++part_.losses[Stat::kTableMissing];
    return rows;
  }
  std::map<std::pair<int64_t, int64_t>, std::string> domains;  // (pid, id) -> name
  struct InDomain {
    size_t slice;
    std::pair<int64_t, int64_t> domain;
    std::string payload;
  };
  std::vector<InDomain> in_domains;  // ranges outside of the default domain: whose they are is known at the end
  const StringId op_category = pool_.strings.intern("cpu_op");
  const StringId range_category = pool_.strings.intern("user_annotation");
  database_.scan(
      kTable, {"start", "end", "eventType", "globalTid", "domainId", "text", "textId", "jsonText", "jsonTextId"},
      part_.losses, [&](const SqlRow& row) {
        const int64_t type = row.integer(2);
        const int64_t thread = row.integer(3);
        if (type == kDomainName) {
          const std::string_view name = row.is_null(5) ? pool_.strings.view(string_(row.integer(6))) : row.text(5);
          domains[{pid_of(thread), row.integer(4)}] = name;
        }
        if (type == kDomainName || type == 33 || type == 32) return;  // names of domains, categories, threads
        ++rows;
        if (type != kPushPop && type != kStartEnd && type != kNvtxMark) {
          ++part_.losses[Stat::kEventNotUsed];
          return;
        }
        const std::string_view text = row.is_null(5) ? pool_.strings.view(string_(row.integer(6))) : row.text(5);
        if (type == kNvtxMark) {
          const int64_t time_ns = row.integer(0);
          if (!is_time(time_ns)) {
            ++part_.losses[Stat::kEventWithoutTime];
            return;
          }
          part_.instants.push_back({.time_ns = time_ns,
                                    .lane = thread_lane_(thread),
                                    .name = pool_.strings.intern(text),
                                    .category = range_category});
          return;
        }
        RawHostSlice slice;
        if (row.is_null(1)) {  // the recording ended inside of it
          ++part_.losses[Stat::kBeginWithoutEnd];
          return;
        }
        if (!read_times(row, 0, 1, part_.losses, slice.start_ns, slice.duration_ns)) return;
        const int64_t pid = pid_of(thread);
        const NvtxText parsed = read_nvtx_text(text);
        slice.kind = parsed.is_op ? HostKind::kOp : HostKind::kAnnotation;
        slice.category = parsed.is_op ? op_category : range_category;
        slice.name = pool_.strings.intern(parsed.name);
        // Started on one thread and ended on another: it nests in none.
        slice.lane = type == kStartEnd ? range_lane(pid, slice) : thread_lane_(thread);
        part_.plain_ops.push_back({.external_id = joined_(pid, parsed.op_id),
                                   .sequence_number = parsed.sequence_number,
                                   .input_dims = pool_.strings.intern(parsed.sizes)});
        slice.detail = static_cast<Row>(part_.plain_ops.size() - 1);
        const int64_t domain = row.integer(4);
        if (domain != kNoNumber && domain != 0) {
          const std::string_view json = row.is_null(7) ? pool_.strings.view(string_(row.integer(8))) : row.text(7);
          in_domains.push_back({part_.host_slices.size(), {pid, domain}, std::string(json)});
        }
        part_.host_slices.push_back(slice);
      });
  const StringId nccl = pool_.strings.intern("nccl");
  for (const InDomain& each : in_domains) {
    const auto domain = domains.find(each.domain);
    if (domain == domains.end() || domain->second != "NCCL") continue;
    RawHostSlice& slice = part_.host_slices[each.slice];
    slice.category = nccl;
    const std::string name(pool_.strings.view(slice.name));
    part_.plain_ops[slice.detail].comm = collective(name, each.payload);
  }
  return rows;
}

// Ranges of start and end may overlap: each goes to the first lane that is free.
LaneId NvtxRanges::range_lane(int64_t pid, const RawHostSlice& slice) {
  std::vector<int64_t>& ends = range_ends_[pid];
  constexpr size_t kMaxLanes = 64;
  size_t at = 0;
  while (at + 1 < kMaxLanes && at < ends.size() && ends[at] > slice.start_ns) ++at;
  if (at >= ends.size()) ends.push_back(INT64_MIN);
  ends[at] = std::max(ends[at], slice.start_ns + slice.duration_ns);
  return pool_.lane({.number = pid}, pool_.text_id("NVTX ranges" + (at == 0 ? "" : " " + std::to_string(at + 1))));
}

// "ncclAllReduce" with a payload such as {"Message size [bytes]": 4096, "No. of ranks": 2}.
Row NvtxRanges::collective(std::string_view name, std::string_view json) {
  if (!name.starts_with("nccl")) return kNoRow;
  std::string word;
  for (const char c : name.substr(4)) word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  part_.comm_details.push_back({.in_elements = payload_number(json, "Message size [bytes]"),
                                .group_size = payload_number(json, "No. of ranks"),
                                .rank = payload_number(json, "Rank"),
                                .collective = pool_.strings.intern(word),
                                .dtype = pool_.strings.intern("Byte")});
  return static_cast<Row>(part_.comm_details.size() - 1);
}

}  // namespace firelane::importer

#include "import/lane/sample_rows.h"

#include <simdjson.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace firelane::importer {

namespace {

namespace dom = simdjson::dom;

constexpr int64_t kOnCpu = 1;
constexpr int64_t kHasGil = 2;
constexpr int64_t kCpuUnknown = 4;
constexpr int64_t kMostThread = INT32_MAX;

}  // namespace

void add_stack_samples(std::string_view json, uint32_t pid, RawPool& pool, RawPart& part) {
  dom::parser parser;
  dom::element root;
  dom::array stacks;
  dom::array samples;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS ||
      root["stacks"].get(stacks) != simdjson::SUCCESS || root["samples"].get(samples) != simdjson::SUCCESS) {
    ++part.losses[Stat::kLaneChunkDamaged];
    return;
  }
  std::vector<StringId> ids;
  for (const dom::element stack : stacks) {
    std::string_view text;
    if (stack.get(text) != simdjson::SUCCESS) text = "";
    ids.push_back(pool.strings.intern(text));
    // Frames by themselves, too: flame graphs name them.
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(';', at), text.size());
      pool.strings.intern(text.substr(at, end - at));
      at = end + 1;
    }
  }
  for (const dom::element sample : samples) {
    int64_t fields[5] = {};
    bool is_good = true;
    for (size_t i = 0; i < std::size(fields); ++i) is_good &= sample.at(i).get(fields[i]) == simdjson::SUCCESS;
    const auto& [ticks, ns, thread, stack, flags] = fields;
    is_good &= ticks >= 0 && ns >= 0 && ns <= kMaxDurationNs && thread >= 0 && thread <= kMostThread && stack >= 0 &&
               static_cast<uint64_t>(stack) < ids.size();
    if (!is_good) {
      ++part.losses[Stat::kLaneChunkDamaged];
      continue;
    }
    const bool knows_cpu = (flags & kCpuUnknown) == 0;
    part.stack_samples.push_back({.time_ns = ticks,
                                  .weight_ns = ns,
                                  .lane = pool.lane({.number = pid}, {.number = thread}),
                                  .stack = ids[static_cast<size_t>(stack)],
                                  .on_cpu = knows_cpu ? static_cast<int32_t>(flags & kOnCpu) : -1,
                                  .has_gil = (flags & kHasGil) != 0 ? 1 : 0});
    ++part.event_count;
  }
}

}  // namespace firelane::importer

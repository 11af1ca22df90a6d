// Which ranks a collective runs on. The kernel says it in up to three ways, each of which may be missing or cut: a list
// of ranks (29 and the last of more than 30), start and stride, and the name of a group that pg_config lists in full.
#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "ranks/part/map_pieces.h"

namespace firelane::ranks {

namespace {

std::vector<PartGroup> configured_groups(const Model& model) {
  std::vector<PartGroup> out;
  for (const ProcessGroup& each : model.info.distributed.groups) {
    PartGroup& group = out.emplace_back();
    group.name = each.name;
    group.description = each.description;
    if (each.size > 0) group.size = each.size;
    for (const int64_t rank : each.ranks) {
      if (rank >= 0) group.ranks.push_back(rank);
    }
    group.ranks_cut = static_cast<int64_t>(group.ranks.size()) < group.size;
  }
  return out;
}

bool is_whole(const PartGroup& group) {
  return !group.ranks.empty() && !group.ranks_cut &&
         (group.size == 0 || group.size == static_cast<int64_t>(group.ranks.size()));
}

}  // namespace

std::vector<int64_t> parse_ranks(std::string_view text, bool& is_cut) {
  std::vector<int64_t> out;
  is_cut = text.find("...") != std::string_view::npos;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int64_t number = 0;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec == std::errc{} && number >= 0) {
      out.push_back(number);
      at = parsed.ptr;
    } else {
      ++at;
    }
  }
  return out;
}

GroupTable::GroupTable(const Model& model, Part& part)
    : model_(model), part_(part), configured_(configured_groups(model)) {
  // In order of creation: two groups of the same ranks are told apart by it.
  for (const PartGroup& group : configured_) part_.groups.push_back(group);
}

int64_t GroupTable::group_of(Row comm) {
  const CommDetails& comms = model_.comm_details;
  const uint64_t key = mix_hash(
      mix_hash(static_cast<uint64_t>(comms.group_name[comm]), static_cast<uint64_t>(comms.group_description[comm])),
      mix_hash(static_cast<uint64_t>(comms.group_ranks[comm]), static_cast<uint64_t>(comms.group_size[comm])));
  const auto [found, is_new] = known_.try_emplace(key, -1);
  if (!is_new) return found->second;
  PartGroup group{.name = std::string(model_.text(comms.group_name[comm])),
                  .description = std::string(model_.text(comms.group_description[comm])),
                  .size = std::max<int64_t>(0, comms.group_size[comm])};
  group.ranks = parse_ranks(model_.text(comms.group_ranks[comm]), group.ranks_cut);
  const int64_t start = comms.global_rank_start[comm];
  const int64_t stride = comms.global_rank_stride[comm];
  if (!is_whole(group) && start >= 0 && stride > 0 && group.size > 0 && group.size < (int64_t{1} << 20) &&
      start < (int64_t{1} << 20) && stride < (int64_t{1} << 20)) {
    group.ranks.clear();
    for (int64_t i = 0; i < group.size; ++i) group.ranks.push_back(start + i * stride);
    group.ranks_cut = false;
  }
  if (group.name.empty() && group.description.empty() && group.ranks.empty() && group.size == 0) return -1;
  for (size_t i = 0; i < part_.groups.size(); ++i) {
    const PartGroup& there = part_.groups[i];
    const bool same_name = !group.name.empty() && there.name == group.name;
    const bool fits = (group.size == 0 || there.size == 0 || there.size == group.size) &&
                      (!is_whole(group) || there.ranks.empty() || !is_whole(there) || there.ranks == group.ranks);
    if (same_name && fits) {
      if (part_.groups[i].ranks.empty() || (part_.groups[i].ranks_cut && is_whole(group))) {
        part_.groups[i].ranks = group.ranks;
        part_.groups[i].ranks_cut = group.ranks_cut;
      }
      return found->second = static_cast<int64_t>(i);
    }
  }
  part_.groups.push_back(std::move(group));
  return found->second = static_cast<int64_t>(part_.groups.size()) - 1;
}

int64_t GroupTable::global_rank(int64_t group, int64_t index) const {
  if (group < 0 || index < 0) return -1;
  const PartGroup& g = part_.groups[static_cast<size_t>(group)];
  if (g.ranks_cut || index >= static_cast<int64_t>(g.ranks.size())) return -1;
  return g.ranks[static_cast<size_t>(index)];
}

}  // namespace firelane::ranks

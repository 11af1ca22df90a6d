// What groups are for: by their description where it says so, else by what they do and which ranks they hold.
#include <algorithm>
#include <cctype>

#include "ranks/reduce/group_kinds.h"

namespace firelane::ranks {

namespace {

GroupKind by_words(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  const auto has = [&](std::string_view word) {
    const size_t at = text.find(word);
    if (at == std::string::npos) return false;
    const auto letter = [&](size_t i) {
      return i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) != 0;
    };
    return word.size() > 3 || ((at == 0 || !letter(at - 1)) && !letter(at + word.size()));
  };
  if (has("expert") || has("ep") || has("moe")) return GroupKind::kExpert;
  if (has("tensor") || has("tp") || has("sequence") || has("context") || has("cp")) return GroupKind::kTensor;
  if (has("pipe") || has("pp") || has("embedding")) return GroupKind::kPipeline;
  if (has("data") || has("dp") || has("fsdp") || has("shard") || has("replicate")) return GroupKind::kData;
  return GroupKind::kUnknown;
}

}  // namespace

std::string_view name_of(GroupKind kind) {
  constexpr std::string_view kNames[] = {"unknown",         "all ranks", "data parallel",
                                         "tensor parallel", "pipeline",  "expert parallel"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<GroupKind> group_kinds(const Intake& intake, int64_t world_size) {
  std::vector<GroupKind> out(intake.groups.size(), GroupKind::kUnknown);
  bool has_pairs = false;
  for (size_t g = 0; g < intake.groups.size(); ++g) {
    const JobGroup& group = intake.groups[g];
    has_pairs = has_pairs || group.point_to_point;
    out[g] = by_words(group.description);
    if (group.point_to_point) out[g] = GroupKind::kPipeline;
    if (out[g] != GroupKind::kUnknown) continue;
    if (2 * group.use.all_to_all > group.use.rows) {
      out[g] = GroupKind::kExpert;
    } else if (world_size > 1 && group.size == world_size) {
      out[g] = GroupKind::kWorld;
    }
  }
  // The rest: neighbouring ranks that talk often are tensor parallel, ranks far apart that talk rarely data parallel.
  double most_often = 0;
  const auto often = [&](size_t g) {
    return static_cast<double>(intake.groups[g].use.rows) /
           static_cast<double>(std::max<size_t>(1, intake.groups[g].members.size()));
  };
  for (size_t g = 0; g < out.size(); ++g) most_often = std::max(most_often, often(g));
  for (size_t g = 0; g < out.size(); ++g) {
    const JobGroup& group = intake.groups[g];
    if (out[g] != GroupKind::kUnknown || group.ranks.size() < 2) continue;
    const bool neighbours = group.ranks.back() - group.ranks.front() + 1 == static_cast<int64_t>(group.ranks.size());
    out[g] = neighbours && often(g) * 2 > most_often ? GroupKind::kTensor : GroupKind::kData;
  }
  // One group for everything is data parallel.
  const bool only_world = std::all_of(out.begin(), out.end(), [](GroupKind k) { return k == GroupKind::kWorld; });
  if (only_world && !has_pairs) std::fill(out.begin(), out.end(), GroupKind::kData);
  return out;
}

}  // namespace firelane::ranks

#include <algorithm>
#include <thread>
#include <tuple>
#include <utility>

#include "base/parallel.h"
#include "model/collectives.h"
#include "ranks/reduce/rows.h"

namespace firelane::ranks {

namespace {

// Takes the part's lists of ranks: each rank of a large job has one of all others.
std::vector<JobGroup> job_groups(Part& part) {
  std::vector<JobGroup> out;
  std::map<std::string, int> created;
  for (PartGroup& group : part.groups) {
    JobGroup& job = out.emplace_back();
    job.description = group.description == "undefined" ? "" : group.description;
    job.name = group.name;
    job.size = group.size > 0 ? group.size : group.ranks_cut ? 0 : static_cast<int64_t>(group.ranks.size());
    job.ranks = std::exchange(group.ranks, {});
    if (!job.ranks.empty()) {
      if (!std::ranges::is_sorted(job.ranks)) std::ranges::sort(job.ranks);
      job.known = group.ranks_cut ? GroupKnown::kCutRanks : GroupKnown::kRanks;
      job.key = (group.ranks_cut ? "cut " + std::to_string(group.size) + ":" : "ranks ") + short_rank_list(job.ranks) +
                "|" + job.description;
      if (group.ranks_cut) job.ranks.clear();
    } else {
      job.known = GroupKnown::kName;
      job.key = "name " + group.name + "|" + job.description + "|" + std::to_string(group.size);
    }
    if (const int before = created[job.key]++; before > 0) job.key += "|" + std::to_string(before);
  }
  return out;
}

// The group of rows that say none: of a part with one group, that; of a stream whose other rows have one group, that.
std::vector<int64_t> groups_of_rows(const Part& part) {
  std::vector<int64_t> out = part.collectives.group;
  std::map<int64_t, int64_t> by_stream;  // -2: several
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] < 0) continue;
    const auto [at, is_new] = by_stream.try_emplace(part.collectives.stream[i], out[i]);
    if (!is_new && at->second != out[i]) at->second = -2;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] >= 0) continue;
    const auto at = by_stream.find(part.collectives.stream[i]);
    if (at != by_stream.end() && at->second >= 0) {
      out[i] = at->second;
    } else if (part.groups.size() == 1) {
      out[i] = 0;
    }
  }
  return out;
}

// The other side of sends and receives that say none: where all others of the rank on the same stream go, if there are
// enough of them. A rank that talks to several leaves it open. Whether the other side has such a row at that time is
// for the matching to see.
std::vector<int64_t> peers_of_rows(const PartCollectives& c) {
  constexpr int64_t kLeastKnown = 4;
  struct Seen {
    int64_t peer = -1;
    int64_t count = 0;
    bool several = false;
  };
  std::vector<int64_t> out = c.peer;
  std::map<std::pair<int64_t, int64_t>, Seen> seen;  // by stream and direction
  const auto is_paired = [&](size_t i) {
    const auto op = static_cast<Collective>(c.op[i]);
    return op == Collective::kSend || op == Collective::kRecv;
  };
  bool any_open = false;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!is_paired(i)) continue;
    any_open = any_open || out[i] < 0;
    if (out[i] < 0) continue;
    Seen& each = seen[{c.stream[i], c.op[i]}];
    each.several = each.several || (each.count > 0 && each.peer != out[i]);
    each.peer = out[i];
    ++each.count;
  }
  for (size_t i = 0; i < out.size() && any_open; ++i) {
    if (!is_paired(i) || out[i] >= 0) continue;
    const auto found = seen.find({c.stream[i], c.op[i]});
    if (found == seen.end() || found->second.several || found->second.count < kLeastKnown) continue;
    out[i] = found->second.peer;
  }
  return out;
}

Signature signature_of(const Part& part, size_t i) {
  const PartCollectives& c = part.collectives;
  Signature s{.op = static_cast<Collective>(c.op[i])};
  if (c.dtype[i] >= 0) s.dtype = part.dtypes[static_cast<size_t>(c.dtype[i])];
  switch (s.op) {
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter: break;  // ranks may have different numbers
    case Collective::kAllGather: s.size_key = c.out_elements[i]; break;
    case Collective::kRecv:
      s.op = Collective::kSend;
      s.size_key = std::max(c.out_elements[i], c.in_elements[i]);
      break;
    case Collective::kSend: s.size_key = std::max(c.out_elements[i], c.in_elements[i]); break;
    default: s.size_key = c.in_elements[i]; break;
  }
  return s;
}

// `bytes_of`: of an element, by dtype of the part.
int64_t row_bytes(const PartCollectives& c, size_t i, const std::vector<int64_t>& bytes_of) {
  const int64_t elements = std::max(c.in_elements[i], c.out_elements[i]);
  if (elements <= 0 || c.dtype[i] < 0) return 0;
  return elements > (int64_t{1} << 50) ? 0 : elements * bytes_of[static_cast<size_t>(c.dtype[i])];
}

void add_causes(const PartCollectives& c, size_t i, Causes& sum) {
  sum.compute_ns += c.compute_ns[i];
  sum.kernels += c.kernels[i];
  sum.work += c.work[i];
  sum.copy_ns += c.copy_ns[i];
  sum.input_ns += c.input_ns[i];
  sum.gc_ns += c.gc_ns[i];
  sum.allocation_ns += c.allocation_ns[i];
  sum.sync_ns += c.sync_ns[i];
  sum.host_ns += c.host_ns[i];
  sum.checkpoint_ns += std::max<int64_t>(0, c.checkpoint_ns[i]);
}

void add_reason(const PartCollectives& c, size_t i, CollectiveRow& row) {
  row.kernel = static_cast<int16_t>(std::clamp<int64_t>(c.kernel[i], -1, INT16_MAX));
  row.kernel_us = static_cast<int32_t>(std::clamp<int64_t>(c.kernel_ns[i] / 1000, 0, INT32_MAX));
  const std::pair<int64_t, IdleKind> parts[] = {
      {c.input_ns[i], IdleKind::kInput}, {c.gc_ns[i], IdleKind::kGc},     {c.allocation_ns[i], IdleKind::kAllocation},
      {c.sync_ns[i], IdleKind::kSync},   {c.host_ns[i], IdleKind::kHost}, {c.checkpoint_ns[i], IdleKind::kCheckpoint}};
  int64_t idle = 0;
  int64_t most = 0;
  for (const auto& [ns, kind] : parts) {
    idle += std::max<int64_t>(0, ns);
    if (ns > most) {
      most = ns;
      row.idle = kind;
    }
  }
  if (row.gap_ns > 0 && idle > 0) {
    row.idle_percent =
        static_cast<uint8_t>(std::clamp(100 * static_cast<double>(idle) / static_cast<double>(row.gap_ns), 0.0, 100.0));
  }
}

}  // namespace

std::string_view name_of(IdleKind kind) {
  constexpr std::string_view kNames[] = {
      "", "DataLoader", "garbage collection", "memory allocation", "synchronization", "host", "checkpoint"};
  return kNames[static_cast<size_t>(kind)];
}

bool Signature::operator<(const Signature& other) const {
  return std::tie(op, size_key, dtype) < std::tie(other.op, other.size_key, other.dtype);
}

bool compatible(const Intake& intake, uint32_t a, uint32_t b) {
  if (a == b) return true;
  const Signature& x = intake.signatures[a];
  const Signature& y = intake.signatures[b];
  return x.op == y.op && (x.size_key < 0 || y.size_key < 0 || x.size_key == y.size_key) &&
         (x.dtype.empty() || y.dtype.empty() || x.dtype == y.dtype);
}

uint32_t Intake::signature_id(const Signature& signature) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = signature_ids_.try_emplace(signature, static_cast<uint32_t>(signatures.size()));
  if (is_new) signatures.push_back(signature);
  return at->second;
}

uint32_t Intake::group_id(const JobGroup& group) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = group_ids_.try_emplace(group.key, static_cast<uint32_t>(groups.size()));
  if (is_new) groups.push_back(group);
  return at->second;
}

void Intake::add(Part part) {
  RankRows out;
  const std::vector<JobGroup> own_groups = job_groups(part);
  std::vector<uint32_t> ids(own_groups.size(), UINT32_MAX);
  const std::vector<int64_t> group = groups_of_rows(part);
  const PartCollectives& c = part.collectives;
  const std::vector<int64_t> peers = peers_of_rows(c);
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, uint32_t> known;  // signatures of this part
  std::map<std::tuple<int64_t, int64_t, int64_t>, uint32_t> pairs;
  std::vector<int64_t> bytes_of;
  for (const std::string& dtype : part.dtypes) bytes_of.push_back(bytes_of_dtype(dtype));
  out.rows.reserve(c.size());
  out.step_causes.resize(part.steps.size() + 1);
  GroupUse* use = nullptr;
  uint32_t used_group = UINT32_MAX;
  auto last_key = std::make_tuple(int64_t{-9}, int64_t{0}, int64_t{0}, int64_t{0});
  uint32_t last_signature = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    const auto op = static_cast<Collective>(c.op[i]);
    add_causes(c, i, out.step_causes[c.step[i] < 0 ? part.steps.size() : static_cast<size_t>(c.step[i])]);
    CollectiveRow row{.start_ns = c.start_ns[i],
                      .end_ns = c.end_ns[i],
                      .gap_ns = c.gap_ns[i],
                      .overlapped_ns = c.overlapped_ns[i],
                      .bytes = row_bytes(c, i, bytes_of),
                      .sequence = static_cast<int32_t>(std::clamp<int64_t>(c.sequence[i], -1, INT32_MAX)),
                      .step = static_cast<int32_t>(c.step[i])};
    add_reason(c, i, row);
    const auto key = std::make_tuple(c.op[i], c.dtype[i], c.in_elements[i], c.out_elements[i]);
    if (key != last_key) {
      const auto [at, is_new] = known.try_emplace(key, 0);
      if (is_new) at->second = signature_id(signature_of(part, i));
      last_key = key;
      last_signature = at->second;
    }
    row.signature = last_signature;
    const bool paired = op == Collective::kSend || op == Collective::kRecv;
    if (paired && (peers[i] < 0 || part.rank < 0)) {
      ++out.refused_without_group;
      row.group = UINT32_MAX;
    } else if (paired) {
      const int64_t from = op == Collective::kSend ? part.rank : peers[i];
      const int64_t to = op == Collective::kSend ? peers[i] : part.rank;
      const auto [at, is_new] = pairs.try_emplace({group[i], from, to}, 0);
      if (is_new) {
        const std::string of = group[i] < 0 ? "" : own_groups[static_cast<size_t>(group[i])].key;
        at->second = group_id({.key = "pair " + std::to_string(from) + ">" + std::to_string(to) + "|" + of,
                               .description = group[i] < 0 ? "" : own_groups[static_cast<size_t>(group[i])].description,
                               .size = 2,
                               .ranks = {std::min(from, to), std::max(from, to)},
                               .point_to_point = true,
                               .sender = from});
      }
      row.group = at->second;
    } else if (group[i] < 0) {
      row.group = group_id({.key = "none", .known = GroupKnown::kNothing});
    } else {
      uint32_t& id = ids[static_cast<size_t>(group[i])];
      if (id == UINT32_MAX) id = group_id(own_groups[static_cast<size_t>(group[i])]);
      row.group = id;
    }
    out.rows.push_back(row);
    if (row.group == UINT32_MAX) continue;
    if (row.group != used_group) use = &out.uses[used_group = row.group];
    ++use->rows;
    use->all_to_all += op == Collective::kAllToAll ? 1 : 0;
  }
  part.collectives = {};
  part.groups = {};
  out.part = std::move(part);
  const std::lock_guard lock(mutex_);
  ranks.push_back(std::move(out));
}

void Intake::finish() {
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankRows& a, const RankRows& b) {
    return a.part.rank != b.part.rank ? a.part.rank < b.part.rank : a.part.path < b.part.path;
  });
  // Interned in the order in which parts came in, which differs from run to run: put into an order of its own.
  std::vector<uint32_t> order(groups.size());
  for (uint32_t g = 0; g < order.size(); ++g) order[g] = g;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return groups[a].key < groups[b].key; });
  std::vector<JobGroup> sorted_groups;
  std::vector<uint32_t> new_group(groups.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    new_group[order[i]] = i;
    sorted_groups.push_back(std::move(groups[order[i]]));
  }
  groups = std::move(sorted_groups);
  std::vector<Signature> sorted_signatures;
  std::vector<uint32_t> new_signature(signatures.size());
  for (const auto& [signature, id] : signature_ids_) {
    new_signature[id] = static_cast<uint32_t>(sorted_signatures.size());
    sorted_signatures.push_back(signature);
  }
  signatures = std::move(sorted_signatures);

  has_unix_times = !ranks.empty();
  base_unix_ns = INT64_MAX;
  for (const RankRows& rank : ranks) {
    has_unix_times = has_unix_times && rank.part.unix_start_ns != kNoNumber;
    if (rank.part.unix_start_ns != kNoNumber) base_unix_ns = std::min(base_unix_ns, rank.part.unix_start_ns);
  }
  std::map<std::string, uint32_t> known_domains;
  for (RankRows& rank : ranks) {
    if (rank.part.host.empty() && ranks_per_host > 0 && rank.part.rank >= 0) {
      rank.part.host = "host" + std::to_string(rank.part.rank / ranks_per_host);
    }
    // Without a host's name every rank has a clock of its own: the careful assumption.
    const std::string clock = rank.part.host.empty() ? "rank " + std::to_string(rank.part.rank) : rank.part.host;
    const auto [at, is_new] = known_domains.try_emplace(clock, static_cast<uint32_t>(domains.size()));
    if (is_new) domains.push_back(clock);
    rank.domain = at->second;
  }
  std::vector<std::vector<std::pair<uint32_t, size_t>>> places(
      ranks.size());  // by rank: group as read, its place there
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    for (const auto& [id, use] : ranks[r].uses) {
      JobGroup& group = groups[new_group[id]];
      places[r].emplace_back(id, group.members.size());
      group.members.push_back(r);
      group.use.rows += use.rows;
      group.use.all_to_all += use.all_to_all;
    }
  }
  for (JobGroup& group : groups) group.rows.resize(group.members.size());
  const auto place_rows = [&](size_t begin, size_t end) {
    std::vector<std::vector<GroupRow>*> lists(groups.size(), nullptr);  // by group as read
    for (size_t r = begin; r < end; ++r) {
      RankRows& rank = ranks[r];
      for (const auto& [id, place] : places[r]) {
        lists[id] = &groups[new_group[id]].rows[place];
        lists[id]->reserve(static_cast<size_t>(rank.uses[id].rows));
      }
      const int64_t shift = has_unix_times ? rank.part.unix_start_ns - base_unix_ns : 0;
      for (uint32_t i = 0; i < rank.rows.size(); ++i) {
        CollectiveRow& row = rank.rows[i];
        row.start_ns += shift;
        row.end_ns += shift;
        row.signature = new_signature[row.signature];
        if (row.group == UINT32_MAX) continue;
        lists[row.group]->push_back({i, row.signature, row.sequence});
        row.group = new_group[row.group];
      }
    }
  };
  constexpr size_t kFewRanks = 8;
  parallel_ranges(ranks.size(), std::thread::hardware_concurrency(), place_rows, kFewRanks);
}

}  // namespace firelane::ranks

#include "flight/hangs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/string_pool.h"

namespace firelane::flight {

namespace {

constexpr size_t kMostMismatches = 1000;

// Which group: its members where they are known, else its name.
using GroupKey = std::tuple<std::vector<int64_t>, std::string, std::string, int>;  // members, purpose, name, nth such

// One call of one rank.
struct Call {
  uint32_t log = 0;
  uint32_t entry = 0;
};

struct Group {
  std::vector<int64_t> members;  // sorted; empty: not known
  std::string name, description;
  std::map<int64_t, std::vector<Call>> collectives;                        // by sequence
  std::map<std::pair<std::string, int64_t>, std::vector<Call>> transfers;  // sends and receives: by pair and sequence
  std::map<uint32_t, int64_t> first, last;  // sequence, by log: what its ring still holds
  std::set<int64_t> called_by;              // ranks with any entry
};

// "send 0->1", "recv 1<-0": the pair that it belongs to, "0->1".
std::string pair_of(std::string_view name) {
  const size_t space = name.find(' ');
  if (space == std::string_view::npos) return std::string(name);
  const std::string_view ends = name.substr(space + 1);
  const size_t to = ends.find("->"), from = ends.find("<-");
  if (to != std::string_view::npos) return std::string(ends);
  if (from == std::string_view::npos) return std::string(name);
  return std::string(ends.substr(from + 2)) + "->" + std::string(ends.substr(0, from));
}

// Operations whose sizes are the same on all ranks. An all-to-all, gather or scatter may split unevenly.
bool has_equal_sizes(std::string_view collective) {
  for (const std::string_view name : {"all_reduce", "broadcast", "_all_gather_base", "_reduce_scatter_base", "reduce",
                                      "barrier", "all_reduce_barrier"}) {
    if (collective == name) return true;
  }
  return false;
}

bool is_open(const FlightEntry& entry) { return entry.state != CommState::kCompleted && !entry.is_retired; }

class Finder {
 public:
  explicit Finder(std::span<const FlightLog> logs) : logs_(logs) {}

  HangReport run() {
    for (uint32_t i = 0; i < logs_.size(); ++i) {
      log_of_rank_[logs_[i].rank] = i;
      add_log(i);
    }
    out_.dumps = static_cast<int64_t>(logs_.size());
    // Gloo's dumps describe the group made last, under no name; its entries name theirs.
    out_.groups = std::count_if(groups_.begin(), groups_.end(), [](const auto& each) {
      return !each.second.name.empty() || !each.second.called_by.empty();
    });
    for (auto& [key, group] : groups_) {
      for (const auto& [sequence, calls] : group.collectives) look_at(group, sequence, calls);
      for (const auto& [pair, calls] : group.transfers) look_at_transfer(group, pair.first, pair.second, calls);
    }
    find_absent();
    find_culprits();
    const auto longer = [](const auto& a, const auto& b) { return a.waiting_ns > b.waiting_ns; };
    std::stable_sort(out_.waits.begin(), out_.waits.end(), longer);
    std::stable_sort(out_.stuck.begin(), out_.stuck.end(), longer);
    return std::move(out_);
  }

 private:
  const FlightEntry& entry(const Call& call) const { return logs_[call.log].entries[call.entry]; }
  std::string_view text(const Call& call, StringId id) const { return logs_[call.log].text(id); }
  int64_t rank(const Call& call) const { return logs_[call.log].rank; }
  // A text's number among the texts of all logs: equal texts have equal ones.
  uint32_t shared_id(const Call& call, StringId id) const { return shared_ids_[call.log][static_cast<uint32_t>(id)]; }

  // ---- groups ----------------------------------------------------------------------------

  void add_log(uint32_t index) {
    const FlightLog& log = logs_[index];
    std::vector<uint32_t>& shared = shared_ids_.emplace_back();
    for (uint32_t id = 0; id < log.strings.size(); ++id)
      shared.push_back(static_cast<uint32_t>(texts_.intern(log.text(StringId{id}))));
    std::unordered_map<std::string_view, Group*> by_name;
    std::map<std::pair<std::vector<int64_t>, std::string>, int> seen;
    for (const FlightGroup& group : log.groups) {
      std::vector<int64_t> members = group.ranks;
      std::sort(members.begin(), members.end());
      const int nth = members.empty() ? 0 : seen[{members, group.description}]++;
      const std::string name = members.empty() ? group.name : "";
      Group& found = groups_[{members, group.description, name, nth}];
      found.members = std::move(members);
      if (found.name.empty()) found.name = group.name;
      found.description = group.description;
      by_name[group.name] = &found;
    }
    out_.entries += static_cast<int64_t>(log.entries.size());
    for (uint32_t i = 0; i < log.entries.size(); ++i) {
      const FlightEntry& e = log.entries[i];
      newest_ns_ = std::max({newest_ns_, e.created_ns, e.started_ns, e.completed_ns});
      const std::string_view name = log.text(e.group);
      auto found = by_name.find(name);
      if (found == by_name.end()) {
        const std::string description(log.text(e.group_description));
        Group& added = groups_[{{}, description, std::string(name), 0}];
        added.name = name;
        added.description = description;
        found = by_name.emplace(name, &added).first;
      }
      add_call(*found->second, {index, i}, e);
    }
  }

  void add_call(Group& group, const Call& call, const FlightEntry& e) {
    group.called_by.insert(rank(call));
    if (e.is_p2p) {
      group.transfers[{pair_of(text(call, e.collective)), e.p2p_sequence}].push_back(call);
      return;
    }
    if (e.collective_sequence == kNoNumber) return;
    std::vector<Call>& calls = group.collectives[e.collective_sequence];
    // For a coalesced operation, each part has an entry of its own: the first stands for all.
    if (!calls.empty() && calls.back().log == call.log) return;
    calls.push_back(call);
    group.first.try_emplace(call.log, e.collective_sequence);
    group.last[call.log] = std::max(e.collective_sequence, group.last.try_emplace(call.log, kNoNumber).first->second);
  }

  std::vector<int64_t> members_of(const Group& group) const {
    return group.members.empty() ? std::vector<int64_t>(group.called_by.begin(), group.called_by.end()) : group.members;
  }

  CollectiveId id_of(const Group& group, int64_t sequence, const Call& call) const {
    return {group.name, group.description, sequence, std::string(text(call, entry(call).collective))};
  }

  // ---- one collective --------------------------------------------------------------------

  void look_at(const Group& group, int64_t sequence, const std::vector<Call>& calls) {
    if (calls.size() > 1) ++out_.matched;
    compare(group, sequence, calls);
    std::vector<int64_t> open, completed, missing, unknown;
    for (const Call& call : calls) (is_open(entry(call)) ? open : completed).push_back(rank(call));
    if (open.empty()) return;
    std::vector<int64_t> callers;
    for (const Call& call : calls) callers.push_back(rank(call));
    std::sort(callers.begin(), callers.end());
    for (const int64_t member : members_of(group)) {
      if (std::binary_search(callers.begin(), callers.end(), member)) continue;
      const auto log = log_of_rank_.find(member);
      if (log == log_of_rank_.end()) {
        unknown.push_back(member);
        continue;
      }
      // A ring that has gone beyond no longer holds it.
      const auto last = group.last.find(log->second);
      if (last == group.last.end() || last->second < sequence) missing.push_back(member);
    }
    say_open(id_of(group, sequence, calls.front()), calls, open, completed, missing, unknown);
  }

  void say_open(CollectiveId in, const std::vector<Call>& calls, std::vector<int64_t>& open,
                std::vector<int64_t>& completed, std::vector<int64_t>& missing, std::vector<int64_t>& unknown) {
    std::sort(open.begin(), open.end());
    std::sort(completed.begin(), completed.end());
    std::sort(missing.begin(), missing.end());
    std::string place;
    int64_t since_ns = newest_ns_;
    for (const Call& call : calls) {
      if (!is_open(entry(call))) continue;
      if (place.empty()) place = text(call, entry(call).place);
      if (entry(call).created_ns != kNoNumber) since_ns = std::min(since_ns, entry(call).created_ns);
    }
    const int64_t waiting_ns = newest_ns_ - since_ns;
    const std::vector<int64_t>& late = missing.empty() ? unknown : missing;
    if (!late.empty()) blame({open, late, in, place, waiting_ns});
    if (missing.empty() && unknown.empty()) {
      out_.stuck.push_back({std::move(in), std::move(open), std::move(completed), std::move(place), waiting_ns});
    } else {
      out_.waits.push_back(
          {std::move(in), std::move(open), std::move(missing), std::move(unknown), std::move(place), waiting_ns});
    }
  }

  // A send and its receive have the same sequence; one of them alone waits for the other's rank.
  void look_at_transfer(const Group& group, const std::string& pair, int64_t sequence, const std::vector<Call>& calls) {
    if (calls.size() > 1) ++out_.matched;
    std::vector<int64_t> open, completed, missing, unknown;
    for (const Call& call : calls) (is_open(entry(call)) ? open : completed).push_back(rank(call));
    if (open.empty()) return;
    if (calls.size() == 1) {
      const std::optional<int64_t> peer = other_end(group, pair, rank(calls[0]));
      if (!peer) return;
      (log_of_rank_.contains(*peer) ? missing : unknown).push_back(*peer);
    }
    say_open(id_of(group, sequence, calls.front()), calls, open, completed, missing, unknown);
  }

  // For "0->1", which are indices in the group.
  std::optional<int64_t> other_end(const Group& group, std::string_view pair, int64_t own) const {
    const size_t arrow = pair.find("->");
    if (arrow == std::string_view::npos) return std::nullopt;
    for (const std::string_view end : {pair.substr(0, arrow), pair.substr(arrow + 2)}) {
      int64_t number = 0;
      const auto [stop, error] = std::from_chars(end.data(), end.data() + end.size(), number);
      if (error != std::errc() || number < 0) return std::nullopt;
      const auto place = static_cast<size_t>(number);
      const int64_t found = group.members.empty() ? number : place < group.members.size() ? group.members[place] : own;
      if (found != own) return found;
    }
    return std::nullopt;
  }

  void compare(const Group& group, int64_t sequence, const std::vector<Call>& calls) {
    if (calls.size() < 2 || out_.mismatches.size() >= kMostMismatches) return;
    using Texts = std::pair<StringId FlightEntry::*, StringId FlightEntry::*>;
    const auto same = [&](const Call& a, const Call& b, const Texts& texts) {
      return shared_id(a, entry(a).*texts.first) == shared_id(b, entry(b).*texts.first) &&
             shared_id(a, entry(a).*texts.second) == shared_id(b, entry(b).*texts.second);
    };
    const auto differ = [&](MismatchKind kind, const Texts& texts) {
      const bool all_same = std::all_of(calls.begin() + 1, calls.end(),
                                        [&](const Call& call) { return same(call, calls.front(), texts); });
      if (all_same) return false;
      std::map<std::string, std::vector<int64_t>> ranks_with;
      for (const Call& call : calls) {
        std::string words(text(call, entry(call).*texts.first));
        if (texts.first != texts.second) words += " -> " + std::string(text(call, entry(call).*texts.second));
        ranks_with[words].push_back(rank(call));
      }
      Mismatch found{.in = id_of(group, sequence, calls.front()), .kind = kind, .variants = {}};
      for (auto& [words, ranks] : ranks_with) {
        std::sort(ranks.begin(), ranks.end());
        found.variants.push_back({words, std::move(ranks)});
      }
      std::stable_sort(found.variants.begin(), found.variants.end(),
                       [](const auto& a, const auto& b) { return a.ranks.size() > b.ranks.size(); });
      out_.mismatches.push_back(std::move(found));
      return true;
    };
    if (differ(MismatchKind::kOperation, {&FlightEntry::collective, &FlightEntry::collective})) return;
    if (has_equal_sizes(text(calls.front(), entry(calls.front()).collective)))
      differ(MismatchKind::kSizes, {&FlightEntry::input_sizes, &FlightEntry::output_sizes});
    differ(MismatchKind::kTypes, {&FlightEntry::input_dtypes, &FlightEntry::output_dtypes});
  }

  // ---- who holds up whom -----------------------------------------------------------------

  // Some ranks wait for others in one collective.
  struct Link {
    std::vector<int64_t> waiting, late;
    CollectiveId in;
    std::string place;
    int64_t waiting_ns = 0;
  };

  void blame(Link link) {
    for (const int64_t rank : link.waiting) waits_in_[rank].push_back(links_.size());
    for (const int64_t rank : link.late) late_in_[rank].push_back(links_.size());
    links_.push_back(std::move(link));
  }

  void find_absent() {
    std::set<int64_t> absent;
    for (const auto& [key, group] : groups_) {
      if (group.members.empty()) continue;
      out_.world_size = std::max(out_.world_size, static_cast<int64_t>(group.members.size()));
      for (const int64_t member : group.members) {
        if (!log_of_rank_.contains(member)) absent.insert(member);
      }
    }
    out_.absent_ranks.assign(absent.begin(), absent.end());
  }

  // All who wait for a rank, also through others.
  std::vector<int64_t> blocked_by(int64_t culprit) const {
    std::set<int64_t> blocked;
    std::vector<bool> seen(links_.size(), false);
    std::vector<int64_t> open{culprit};
    while (!open.empty()) {
      const auto late = late_in_.find(open.back());
      open.pop_back();
      if (late == late_in_.end()) continue;
      for (const size_t link : late->second) {
        if (seen[link]) continue;
        seen[link] = true;
        for (const int64_t waiting : links_[link].waiting) {
          if (blocked.insert(waiting).second) open.push_back(waiting);
        }
      }
    }
    return {blocked.begin(), blocked.end()};
  }

  void find_culprits() {
    for (const auto& [rank, links] : late_in_) {
      if (waits_in_.contains(rank)) continue;
      // The one that others wait in longest: what comes after it follows from that.
      const Link& first = links_[*std::min_element(
          links.begin(), links.end(), [&](size_t a, size_t b) { return links_[a].waiting_ns > links_[b].waiting_ns; })];
      const auto log = log_of_rank_.find(rank);
      out_.culprits.push_back({.rank = rank,
                               .blocked = blocked_by(rank),
                               .missing = first.in,
                               .place = first.place,
                               .last = log == log_of_rank_.end() ? "" : last_call(log->second),
                               .has_dump = log != log_of_rank_.end()});
    }
    // Who was seen to be missing comes before who has no dump; then by how many it blocks.
    std::stable_sort(out_.culprits.begin(), out_.culprits.end(), [](const Culprit& a, const Culprit& b) {
      if (a.has_dump != b.has_dump) return a.has_dump;
      return a.blocked.size() > b.blocked.size();
    });
    if (out_.culprits.empty()) find_circles();
  }

  // Nobody is free: follow anyone until a rank comes again.
  void find_circles() {
    std::set<int64_t> done;
    for (const auto& [start, links] : waits_in_) {
      std::vector<int64_t> path;
      int64_t at = start;
      while (!done.contains(at) && std::find(path.begin(), path.end(), at) == path.end()) {
        path.push_back(at);
        const auto next = waits_in_.find(at);
        if (next == waits_in_.end()) break;
        at = links_[next->second.front()].late.front();
      }
      const auto begin = std::find(path.begin(), path.end(), at);
      if (begin != path.end() && path.end() - begin > 1) out_.circles.emplace_back(begin, path.end());
      done.insert(path.begin(), path.end());
    }
  }

  std::string last_call(uint32_t index) const {
    const FlightLog& log = logs_[index];
    if (log.entries.empty()) return "nothing";
    const FlightEntry& e = log.entries.back();
    const std::string_view purpose = log.text(e.group_description);
    const int64_t sequence = e.is_p2p ? e.p2p_sequence : e.collective_sequence;
    std::string out(log.text(e.collective));
    if (sequence != kNoNumber) out += " #" + std::to_string(sequence);
    out += " of " + std::string(purpose.empty() ? log.text(e.group) : purpose);
    if (e.place != kNoString) out += " at " + std::string(log.text(e.place));
    return out;
  }

  std::span<const FlightLog> logs_;
  StringPool texts_;                               // of all logs
  std::vector<std::vector<uint32_t>> shared_ids_;  // by log and its own id
  std::map<int64_t, uint32_t> log_of_rank_;
  std::map<GroupKey, Group> groups_;
  std::vector<Link> links_;
  std::map<int64_t, std::vector<size_t>> waits_in_, late_in_;  // links, by rank
  int64_t newest_ns_ = 0;
  HangReport out_;
};

}  // namespace

std::string_view name_of(MismatchKind kind) {
  switch (kind) {
    case MismatchKind::kOperation: return "operation";
    case MismatchKind::kSizes: return "sizes";
    case MismatchKind::kTypes: return "types";
  }
  return "";
}

HangReport find_hangs(std::span<const FlightLog> logs) { return Finder(logs).run(); }

}  // namespace firelane::flight

#include "ranks/reduce/match.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/parallel.h"
#include "ranks/reduce/clock.h"
#include "ranks/reduce/islands.h"
#include "ranks/reduce/lay.h"
#include "ranks/reduce/refusals.h"

namespace firelane::ranks {

namespace {

// What was found so far; `begin` and `end` of an instance count in its own members.
struct FoundInstances {
  std::vector<Instance> instances;
  std::vector<Member> members;
  std::string first_mismatch;
};

class Matcher {
 public:
  explicit Matcher(const Intake& intake) : intake_(intake) {}

  Matches run() {
    out_.groups.resize(intake_.groups.size());
    int64_t rows = 0;
    for (size_t g = 0; g < intake_.groups.size(); ++g) {
      out_.groups[g].rows = intake_.groups[g].use.rows;
      rows += out_.groups[g].rows;
    }
    std::vector<uint32_t> ordered;
    std::vector<uint32_t> unordered;
    const bool has_groups = std::ranges::any_of(intake_.groups, [](const JobGroup& group) {
      return !group.point_to_point && group.known != GroupKnown::kNothing;
    });
    for (uint32_t g = 0; g < intake_.groups.size(); ++g) {
      if (has_groups && intake_.groups[g].known == GroupKnown::kNothing) {
        refuse(g, Refusal::kNoGroup, out_.groups[g].rows);  // of any of the groups, and of different ones
      } else if (lists(g).size() < 2) {
        refuse(g, Refusal::kAlone, out_.groups[g].rows);
      } else {
        (has_sequence(g) ? ordered : unordered).push_back(g);
      }
    }
    match_by_sequence(ordered, rows);
    match_by_order(unordered);
    out_.instances = std::move(found_.instances);
    out_.members = std::move(found_.members);
    out_.first_mismatch = std::move(found_.first_mismatch);
    number_rows();
    return std::move(out_);
  }

 private:
  const std::vector<std::vector<GroupRow>>& lists(uint32_t g) const { return intake_.groups[g].rows; }

  void number_rows() {
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    out_.instance_of_row.resize(intake_.ranks.size());
    for (size_t r = 0; r < intake_.ranks.size(); ++r) {
      out_.instance_of_row[r].assign(intake_.ranks[r].rows.size(), kNoInstance);
    }
    parallel_ranges(out_.instances.size(), threads, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        for (uint32_t m = out_.instances[i].begin; m < out_.instances[i].end; ++m) {
          const Member& member = out_.members[m];
          out_.instance_of_row[member.rank][member.row] = static_cast<uint32_t>(i);
        }
      }
    });
  }

  // Groups do not touch each other: a run of them for each thread.
  void match_by_sequence(const std::vector<uint32_t>& groups, int64_t all_rows) {
    if (groups.empty()) return;
    int64_t rows = 0;
    for (const uint32_t g : groups) rows += out_.groups[g].rows;
    const auto pieces = static_cast<int64_t>(rows < 100'000 ? 1u : std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::vector<uint32_t>> runs(static_cast<size_t>(pieces));
    int64_t before = 0;
    for (const uint32_t g : groups) {
      runs[static_cast<size_t>(before * pieces / rows)].push_back(g);
      before += out_.groups[g].rows;
    }
    std::vector<FoundInstances> found(runs.size());
    found[0].members.reserve(static_cast<size_t>(all_rows));
    parallel_each(runs.size(), static_cast<unsigned>(pieces), [&](size_t i) {
      for (const uint32_t g : runs[i]) by_sequence(g, found[i]);
    });
    found_ = std::move(found[0]);
    for (size_t i = 1; i < found.size(); ++i) {
      const auto shift = static_cast<uint32_t>(found_.members.size());
      found_.members.insert(found_.members.end(), found[i].members.begin(), found[i].members.end());
      for (const Instance& each : found[i].instances) {
        found_.instances.push_back({each.group, each.signature, each.begin + shift, each.end + shift});
      }
      if (found_.first_mismatch.empty()) found_.first_mismatch = std::move(found[i].first_mismatch);
    }
  }

  void refuse(uint32_t g, Refusal why, int64_t rows) { out_.groups[g].refused[static_cast<size_t>(why)] += rows; }

  bool has_sequence(uint32_t g) const {
    return std::ranges::all_of(lists(g), [](const std::vector<GroupRow>& rows) {
      return std::ranges::all_of(rows, [](const GroupRow& row) { return row.sequence >= 0; });
    });
  }

  bool agree(uint32_t a, uint32_t b) const {
    if (a == b) return true;
    const Signature& x = intake_.signatures[a];
    const Signature& y = intake_.signatures[b];
    return x.op == y.op && (x.size_key < 0 || y.size_key < 0 || x.size_key == y.size_key);
  }

  // Rows with the same number on the same rank (coalesced ones) are told apart by their order.
  void by_sequence(uint32_t g, FoundInstances& out) {
    struct Entry {
      uint64_t key;
      uint32_t member;
      GroupRow row;
    };
    const auto& rows = lists(g);
    out_.groups[g].by = MatchedBy::kSequence;
    if (matched_elsewhere(g, out)) return;
    int32_t least = INT32_MAX;
    int32_t most = 0;
    bool plain = true;  // strictly ascending on every rank
    for (const std::vector<GroupRow>& own : rows) {
      for (size_t i = 0; i < own.size(); ++i) {
        const int32_t sequence = own[i].sequence;
        least = std::min(least, sequence);
        most = std::max(most, sequence);
        plain = plain && (i == 0 || own[i - 1].sequence < sequence);
      }
    }
    const int64_t span = int64_t{most} - least + 1;
    if (plain && span <= 4 * out_.groups[g].rows) {
      std::vector<uint32_t> next(rows.size(), 0);
      std::vector<Entrant> members;
      for (int32_t sequence = least;; ++sequence) {
        members.clear();
        for (uint32_t m = 0; m < rows.size(); ++m) {
          if (next[m] < rows[m].size() && rows[m][next[m]].sequence == sequence) {
            members.push_back(entrant(g, m, rows[m][next[m]++]));
          }
        }
        add_instance(g, members, out);
        if (sequence == most) break;
      }
      return;
    }
    std::vector<Entry> entries;
    for (uint32_t m = 0; m < rows.size(); ++m) {
      std::vector<GroupRow> ordered = rows[m];
      std::ranges::stable_sort(ordered, {}, &GroupRow::sequence);
      uint32_t ordinal = 0;
      for (size_t i = 0; i < ordered.size(); ++i) {
        ordinal = i > 0 && ordered[i].sequence == ordered[i - 1].sequence ? ordinal + 1 : 0;
        entries.push_back({static_cast<uint64_t>(ordered[i].sequence) << 32 | ordinal, m, ordered[i]});
      }
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.key != b.key ? a.key < b.key : a.member < b.member; });
    std::vector<Entrant> members;
    for (size_t i = 0; i < entries.size();) {
      members.clear();
      const uint64_t key = entries[i].key;
      for (; i < entries.size() && entries[i].key == key; ++i) {
        members.push_back(entrant(g, entries[i].member, entries[i].row));
      }
      add_instance(g, members, out);
    }
  }

  bool matched_elsewhere(uint32_t g, FoundInstances& out) {
    std::vector<std::vector<Member>> collectives;
    if (!intake_.matched.members_of(intake_, g, collectives)) return false;
    std::vector<Entrant> entrants;
    for (const std::vector<Member>& members : collectives) {
      entrants.clear();
      for (const Member& each : members) {
        entrants.push_back({each, intake_.ranks[each.rank].rows[each.row].signature});
      }
      add_instance(g, entrants, out);
    }
    return true;
  }

  Entrant entrant(uint32_t g, size_t member, const GroupRow& row) const {
    return {{intake_.groups[g].members[member], row.row}, row.signature};
  }

  // With whom, and how much, nobody can say: more steps would not help.
  bool is_batch(uint32_t signature) const { return intake_.signatures[signature].op == Collective::kSendRecv; }

  void add_instance(uint32_t g, const std::vector<Entrant>& members, FoundInstances& out) {
    if (members.empty()) return;
    if (members.size() == 1) {
      return refuse(g, is_batch(members[0].signature) ? Refusal::kBatched : Refusal::kOutside, 1);
    }
    uint32_t fullest = members[0].signature;
    for (const Entrant& m : members) {
      if (!agree(m.signature, members[0].signature)) {
        if (out.first_mismatch.empty()) out.first_mismatch = describe_mismatch(g, members[0].member, m.member);
        return refuse(g, Refusal::kMismatch, static_cast<int64_t>(members.size()));
      }
      if (intake_.signatures[fullest].size_key < 0) fullest = m.signature;
    }
    if (is_batch(fullest)) {
      return refuse(g, Refusal::kBatched, static_cast<int64_t>(members.size()));
    }
    const auto begin = static_cast<uint32_t>(out.members.size());
    for (const Entrant& m : members) out.members.push_back(m.member);
    out.instances.push_back({g, fullest, begin, static_cast<uint32_t>(out.members.size())});
    out_.groups[g].matched_rows += static_cast<int64_t>(members.size());
    ++out_.groups[g].instances;
  }

  std::string describe_mismatch(uint32_t g, const Member& a, const Member& b) const {
    const auto words = [&](const Member& m) {
      const CollectiveRow& row = intake_.ranks[m.rank].rows[m.row];
      const Signature& s = intake_.signatures[row.signature];
      return "rank " + std::to_string(intake_.ranks[m.rank].part.rank) + " has " + std::string(name_of(s.op)) + " of " +
             std::to_string(s.size_key) + " elements as number " + std::to_string(row.sequence);
    };
    return words(a) + ", " + words(b) + " of the same group (" + intake_.groups[g].description + ")";
  }

  void match_by_order(const std::vector<uint32_t>& groups) {
    if (groups.empty()) return;
    std::vector<Laid> laid = lay_by_clock(intake_, groups);
    // Collectives with numbers tell clocks that the others need.
    std::optional<Clocks> known;
    if (!found_.instances.empty()) known = clocks_now();
    Islands islands(intake_, known ? &*known : nullptr, laid);
    join_machines(islands);
    islands.join_all();
    join_together(islands);
    islands.finish();
    for (Laid& each : laid) take(each);
    if (std::ranges::none_of(laid, has_open_rows)) return;
    const Clocks clocks = clocks_now();
    for (const Laid& each : laid) count_refused(intake_, clocks, each, out_.groups[each.group]);
  }

  static bool has_open_rows(const Laid& laid) {
    return std::ranges::any_of(laid.state, [](LaidState state) { return state != LaidState::kCertain; }) ||
           std::ranges::any_of(laid.found, [](const auto& entrants) { return entrants.size() == 1; });
  }

  Clocks clocks_now() {
    Matches matched;
    std::swap(matched.instances, found_.instances);
    std::swap(matched.members, found_.members);
    Clocks out = fit_clocks(intake_, matched);
    std::swap(matched.instances, found_.instances);
    std::swap(matched.members, found_.members);
    return out;
  }

  void take(Laid& laid) {
    out_.groups[laid.group].by = MatchedBy::kOrder;
    for (std::vector<Entrant>& members : laid.found) {
      if (members.size() < 2) continue;  // counted by count_refused()
      std::ranges::sort(members, {}, [](const Entrant& c) { return c.member.rank; });
      add_instance(laid.group, members, found_);
    }
  }

  const Intake& intake_;
  Matches out_;
  FoundInstances found_;
};

constexpr std::array<std::pair<std::string_view, std::string_view>, kRefusalCount> kRefusalWords = {{
    {"alone", "no other rank of the group is there: give the traces of more ranks"},
    {"outside", "only one rank recorded it: let all ranks record the same steps"},
    {"periodic",
     "the pattern repeats so evenly that several shifts fit: record more steps, or with torch 2.12 or newer, "
     "which numbers collectives"},
    {"uncertain", "the rows of the ranks do not line up: too many are missing, or they are of different runs"},
    {"mismatch", "ranks disagree about what the collective is: the program may hang or compute wrongly there"},
    {"no peer", "a send or receive that does not say with which rank"},
    {"batched", "several sends and receives in one kernel, without arguments"},
    {"causality", "a rank ends before another begins: not the same collective, or a clock that jumped"},
    {"no group", "a collective that does not say of which group it is, in a job that has groups"},
}};

}  // namespace

std::string_view name_of(Refusal refusal) { return kRefusalWords[static_cast<size_t>(refusal)].first; }
std::string_view meaning_of(Refusal refusal) { return kRefusalWords[static_cast<size_t>(refusal)].second; }
std::string_view name_of(MatchedBy by) {
  return by == MatchedBy::kSequence ? "sequence" : by == MatchedBy::kOrder ? "order" : "none";
}

Matches match_collectives(const Intake& intake) { return Matcher(intake).run(); }

}  // namespace firelane::ranks

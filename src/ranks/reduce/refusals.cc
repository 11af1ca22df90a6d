#include "ranks/reduce/refusals.h"

#include <algorithm>
#include <cmath>

namespace firelane::ranks {

namespace {

// How far from each other the ends of one collective may lie, generously: calling a row outside is a claim.
constexpr double kPartnerNs = 1'000'000;
constexpr double kFarPartnerNs = 50'000'000;

// A row, or a collective of several ranks.
struct MayBePartner {
  double end_ns = 0;
  uint32_t signature = 0;
  uint32_t member = UINT32_MAX;  // UINT32_MAX: several
  int32_t found = -1;
};

class RefusalCounter {
 public:
  RefusalCounter(const Intake& intake, const Clocks& clocks, const Laid& laid)
      : intake_(intake), clocks_(clocks), laid_(laid), group_(intake.groups[laid.group]) {
    for (const auto& entrants : laid.found) {
      if (entrants.size() < 2) continue;
      // By the clock that is known best.
      const auto known = std::find_if(entrants.begin(), entrants.end(), [&](const Entrant& each) {
        return is_known(intake_.ranks[each.member.rank].domain);
      });
      const Member& by = (known == entrants.end() ? entrants.begin() : known)->member;
      add(by, {.signature = fullest(entrants), .found = static_cast<int32_t>(&entrants - laid.found.data())}, false);
    }
    for (uint32_t m = 0; m < laid.instance.size(); ++m) {
      for (size_t i = 0; i < laid.instance[m].size(); ++i) {
        if (!is_left(m, i)) continue;
        const GroupRow& row = group_.rows[m][i];
        add({group_.members[m], row.row}, {.signature = row.signature, .member = m},
            laid.state[m] == LaidState::kSeveral);
      }
    }
    for (auto& by_state : lists_) {
      for (auto& list : by_state) std::ranges::sort(list, {}, &MayBePartner::end_ns);
    }
  }

  void run(GroupMatch& out) {
    for (uint32_t m = 0; m < laid_.instance.size(); ++m) {
      own_.clear();
      for (const int32_t at : laid_.instance[m]) {
        if (at >= 0) own_.push_back(at);
      }
      std::ranges::sort(own_);
      for (size_t i = 0; i < laid_.instance[m].size(); ++i) {
        if (is_left(m, i)) ++out.refused[static_cast<size_t>(why(m, group_.rows[m][i]))];
      }
    }
  }

 private:
  bool is_known(uint32_t domain) const { return clocks_.domains[domain].known && clocks_.domains[domain].consistent; }
  bool is_left(size_t m, size_t i) const {
    const int32_t at = laid_.instance[m][i];
    return at < 0 || laid_.found[static_cast<size_t>(at)].size() < 2;
  }
  uint32_t fullest(const std::vector<Entrant>& entrants) const {
    uint32_t out = entrants[0].signature;
    for (const Entrant& each : entrants) {
      if (intake_.signatures[out].size_key < 0) out = each.signature;
    }
    return out;
  }

  // On the common axis where the clock is known.
  double end_of(const Member& member) const {
    const RankRows& rank = intake_.ranks[member.rank];
    const auto end = static_cast<double>(rank.rows[member.row].end_ns);
    return is_known(rank.domain) ? end - clocks_.domains[rank.domain].ahead_ns(rank.rows[member.row].end_ns) : end;
  }

  void add(const Member& by, MayBePartner candidate, bool several) {
    candidate.end_ns = end_of(by);
    lists_[is_known(intake_.ranks[by.rank].domain) ? 1 : 0][several ? 1 : 0].push_back(candidate);
  }

  Refusal why(uint32_t m, const GroupRow& row) const {
    if (intake_.signatures[row.signature].op == Collective::kSendRecv) return Refusal::kBatched;
    const bool among_several = has_partner(m, row, true);
    if (!among_several && !has_partner(m, row, false)) return Refusal::kOutside;
    return among_several || laid_.state[m] == LaidState::kSeveral ? Refusal::kPeriodic : Refusal::kUncertain;
  }

  // Whether a row of another rank may be the same collective; `several`: of a rank for which several shifts fit.
  bool has_partner(uint32_t m, const GroupRow& row, bool several) const {
    const RankRows& rank = intake_.ranks[group_.members[m]];
    const bool known = is_known(rank.domain);
    const double end = end_of({group_.members[m], row.row});
    const double far = intake_.has_unix_times ? kFarPartnerNs : INFINITY;
    const double near = rank.part.has_device_work ? kPartnerNs : kFarPartnerNs;
    return is_among(lists_[1][several ? 1 : 0], m, row.signature, end, known ? near : far) ||
           is_among(lists_[0][several ? 1 : 0], m, row.signature, end, far);
  }

  bool is_among(const std::vector<MayBePartner>& list, uint32_t m, uint32_t signature, double end_ns,
                double within_ns) const {
    auto at = std::ranges::lower_bound(list, end_ns - within_ns, {}, &MayBePartner::end_ns);
    for (; at != list.end() && at->end_ns <= end_ns + within_ns; ++at) {
      if (at->member == m || (at->found >= 0 && std::ranges::binary_search(own_, at->found))) continue;
      if (compatible(intake_, at->signature, signature)) return true;
    }
    return false;
  }

  const Intake& intake_;
  const Clocks& clocks_;
  const Laid& laid_;
  const JobGroup& group_;
  std::vector<MayBePartner> lists_[2][2];  // clock known; several shifts fit
  std::vector<int32_t> own_;               // collectives that the member is in
};

}  // namespace

void count_refused(const Intake& intake, const Clocks& clocks, const Laid& laid, GroupMatch& out) {
  RefusalCounter(intake, clocks, laid).run(out);
}

}  // namespace firelane::ranks

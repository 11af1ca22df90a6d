#include "ranks/reduce/shuffle.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/crc32c.h"
#include "base/varint.h"
#include "ranks/reduce/match.h"
#include "ranks/reduce/rows.h"

namespace firelane::ranks {

namespace {

constexpr char kSlice = 'S';
constexpr char kMatch = 'M';

void append_frame(std::string& out, const std::string& group, int64_t range, std::string_view payload) {
  std::string body;
  append_fixed(body, static_cast<uint32_t>(group.size()));
  append_fixed(body, range);
  body += group;
  body += payload;
  append_fixed(out, static_cast<uint32_t>(body.size() + sizeof(uint32_t)));
  append_fixed(out, crc32c(body));
  out += body;
}

using Visit = std::function<bool(std::string_view group, int64_t range, std::string_view payload)>;

// Calls `visit` for the payload of each frame of this kind.
Result<void> each_frame(std::string_view frames, char kind, const std::string& name, const Visit& visit) {
  ByteReader in(frames);
  while (!in.empty()) {
    const auto bytes = in.fixed<uint32_t>();
    ByteReader frame(in.bytes(bytes));
    const auto sum = frame.fixed<uint32_t>();
    const std::string_view body = frame.bytes(frame.left());
    ByteReader fields(body);
    const auto key_bytes = fields.fixed<uint32_t>();
    const auto range = fields.fixed<int64_t>();
    const std::string_view key = fields.bytes(key_bytes);
    const auto found = fields.fixed<char>();
    if (!in.ok() || !fields.ok() || sum != crc32c(body) || found != kind ||
        !visit(key, range, fields.bytes(fields.left()))) {
      return Error{name + ": not what firelane ranks " + (kind == kSlice ? "slice" : "match") +
                   " wrote, or damaged; make it again"};
    }
  }
  return {};
}

struct NumberedRow {
  int64_t sequence = 0;
  uint32_t ordinal = 0;  // of rows with the same number on one rank: coalesced ones
  int64_t rank = 0;
  uint32_t row = 0;
  bool operator<(const NumberedRow& other) const {
    return std::tie(sequence, ordinal, rank) < std::tie(other.sequence, other.ordinal, other.rank);
  }
  bool is_with(const NumberedRow& other) const { return sequence == other.sequence && ordinal == other.ordinal; }
};

bool read_slice(std::string_view payload, std::vector<NumberedRow>& out) {
  ByteReader in(payload);
  const int64_t rank = in.signed_varint();
  const uint64_t rows = in.varint();
  if (rows > payload.size()) return false;
  const size_t first = out.size();
  uint64_t row = 0;
  int64_t sequence = 0;
  for (uint64_t i = 0; i < rows && in.ok(); ++i) {
    row += in.varint();
    sequence = static_cast<int64_t>(static_cast<uint64_t>(sequence) + static_cast<uint64_t>(in.signed_varint()));
    out.push_back({sequence, 0, rank, static_cast<uint32_t>(row)});
  }
  if (!in.ok() || !in.empty()) return false;
  const auto begin = out.begin() + static_cast<std::ptrdiff_t>(first);
  std::stable_sort(begin, out.end());
  for (auto at = begin; at != out.end(); ++at) {
    at->ordinal = at != begin && std::prev(at)->sequence == at->sequence ? std::prev(at)->ordinal + 1 : 0;
  }
  return true;
}

std::string match_of(std::vector<NumberedRow>& rows) {
  std::sort(rows.begin(), rows.end());
  std::string body;
  uint64_t count = 0;
  for (size_t i = 0; i < rows.size(); ++count) {
    size_t end = i;
    while (end < rows.size() && rows[end].is_with(rows[i])) ++end;
    append_varint(body, end - i);
    for (int64_t before = 0; i < end; ++i) {
      append_zigzag(body, static_cast<int64_t>(static_cast<uint64_t>(rows[i].rank) - static_cast<uint64_t>(before)));
      append_varint(body, rows[i].row);
      before = rows[i].rank;
    }
  }
  std::string out(1, kMatch);
  append_varint(out, count);
  return out + body;
}

struct MatchedRow {
  int64_t rank = 0;
  uint32_t row = 0;
};

bool read_match(std::string_view payload, std::vector<std::vector<MatchedRow>>& out) {
  ByteReader in(payload);
  const uint64_t collectives = in.varint();
  if (collectives > payload.size()) return false;
  for (uint64_t i = 0; i < collectives && in.ok(); ++i) {
    const uint64_t members = in.varint();
    if (members == 0 || members > in.left()) return false;
    std::vector<MatchedRow>& rows = out.emplace_back();
    int64_t rank = 0;
    for (uint64_t m = 0; m < members && in.ok(); ++m) {
      rank = static_cast<int64_t>(static_cast<uint64_t>(rank) + static_cast<uint64_t>(in.signed_varint()));
      const uint64_t row = in.varint();
      rows.push_back({rank, static_cast<uint32_t>(row)});
    }
  }
  return in.ok() && in.empty();
}

}  // namespace

std::string slice_part(Part part, int64_t range) {
  Intake intake;  // which group a row is of, it knows
  const int64_t rank = part.rank;
  intake.add(std::move(part));
  const std::vector<CollectiveRow>& rows = intake.ranks[0].rows;
  std::map<std::pair<std::string, int64_t>, std::vector<uint32_t>> slices;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    if (rows[i].group == UINT32_MAX || rows[i].sequence < 0) continue;
    slices[{intake.groups[rows[i].group].key, rows[i].sequence / range}].push_back(i);
  }
  std::string out;
  for (const auto& [key, own] : slices) {
    std::string payload(1, kSlice);
    append_zigzag(payload, rank);
    append_varint(payload, own.size());
    uint32_t row = 0;
    int32_t sequence = 0;
    for (const uint32_t i : own) {
      append_varint(payload, i - row);
      append_zigzag(payload, int64_t{rows[i].sequence} - sequence);
      row = i;
      sequence = rows[i].sequence;
    }
    append_frame(out, key.first, key.second, payload);
  }
  return out;
}

Result<std::string> match_slices(std::string_view frames, const std::string& name) {
  std::map<std::pair<std::string, int64_t>, std::vector<NumberedRow>> rows;
  FL_TRY_VOID(each_frame(frames, kSlice, name, [&](std::string_view group, int64_t range, std::string_view payload) {
    return read_slice(payload, rows[{std::string(group), range}]);
  }));
  std::string out;
  for (auto& [key, own] : rows) append_frame(out, key.first, key.second, match_of(own));
  return out;
}

Result<void> ShuffledMatches::add(std::string_view frames, const std::string& name) {
  return each_frame(frames, kMatch, name, [&](std::string_view group, int64_t range, std::string_view payload) {
    return payloads_.try_emplace({std::string(group), range}, payload).second;
  });
}

bool ShuffledMatches::members_of(const Intake& intake, uint32_t group_index,
                                 std::vector<std::vector<Member>>& out) const {
  const JobGroup& group = intake.groups[group_index];
  std::vector<std::vector<MatchedRow>> collectives;
  for (auto at = payloads_.lower_bound({group.key, INT64_MIN}); at != payloads_.end() && at->first.first == group.key;
       ++at) {
    if (!read_match(at->second, collectives)) return false;
  }
  const auto rank_number = [&](uint32_t rank) { return intake.ranks[rank].part.rank; };
  std::vector<std::vector<bool>> seen;
  for (const uint32_t rank : group.members) seen.emplace_back(intake.ranks[rank].rows.size());
  int64_t count = 0;
  int32_t before = -1;
  out.clear();
  for (const std::vector<MatchedRow>& rows : collectives) {
    std::vector<Member> members;
    int32_t sequence = -1;
    for (const MatchedRow& each : rows) {
      const auto at = std::ranges::lower_bound(group.members, each.rank, {}, rank_number);
      if (at == group.members.end() || rank_number(*at) != each.rank) return false;
      const std::vector<CollectiveRow>& own = intake.ranks[*at].rows;
      if (each.row >= own.size() || own[each.row].group != group_index || own[each.row].sequence < 0) return false;
      std::vector<bool>& seen_here = seen[static_cast<size_t>(at - group.members.begin())];
      if (seen_here[each.row] || (sequence >= 0 && own[each.row].sequence != sequence)) return false;
      if (!members.empty() && members.back().rank >= *at) return false;
      seen_here[each.row] = true;
      sequence = own[each.row].sequence;
      members.push_back({*at, each.row});
      ++count;
    }
    // The same number again is the next row of ranks that had it already: coalesced ones.
    if (sequence < before ||
        (sequence == before && !std::ranges::includes(out.back(), members, {}, &Member::rank, &Member::rank))) {
      return false;
    }
    before = sequence;
    out.push_back(std::move(members));
  }
  return count > 0 && count == group.use.rows;
}

}  // namespace firelane::ranks

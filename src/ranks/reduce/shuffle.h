// Which rows are one collective, found by many machines: for jobs whose rows one machine should not sort.
//
// slice_part() cuts the numbered rows of a part into slices, each of one group and one range of sequence numbers;
// slices of one group and range, of all ranks, come together on any machine, where match_slices() tells which rows have
// one number; the reduce takes that (Intake::matched) instead of finding it itself, and checks it. The answer is the
// same byte for byte. Groups without numbers are matched by the reduce.
//
//   frame := bytes u32, checksum u32 (CRC-32C of the rest), key bytes u32, range i64, key, payload
//   slice := 'S', rank zigzag, rows varint, rows x (row varint, distance from the row before; sequence zigzag,
//   likewise) match := 'M', collectives varint, each: members varint, members x (rank zigzag, distance; row varint)
//
// docs/ranks-part.md is the other half of this.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ranks/part/part.h"

namespace firelane::ranks {

inline constexpr int64_t kRangeOfNumbers = 4096;

// Frames, one after another.
std::string slice_part(Part part, int64_t range = kRangeOfNumbers);

// Frames of slices, of any groups and ranges, become frames of matches. All ranks' slices of a group and range must be
// there. `name` stands in messages.
Result<std::string> match_slices(std::string_view frames, const std::string& name);

class Intake;
struct Member;

// What came back, by key of the group and range.
class ShuffledMatches {
 public:
  Result<void> add(std::string_view frames, const std::string& name);
  // The rows of each collective of a group in order of their numbers. False when there are none, or when they are not
  // exactly the rows of the group: each once, those with one number together.
  bool members_of(const Intake& intake, uint32_t group, std::vector<std::vector<Member>>& out) const;

 private:
  std::map<std::pair<std::string, int64_t>, std::string> payloads_;
};

}  // namespace firelane::ranks

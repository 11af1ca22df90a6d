// Gives the ids inside of one part's rows their numbers in the whole trace.
//
// What happens to a value follows from the type of its column (model/table.h): a text, a lane or a row of another table
// cannot be forgotten.
#pragma once

#include <type_traits>
#include <vector>

#include "model/raw.h"

namespace firelane {

// Where the rows of a part begin in the whole trace.
struct PartBase {
#define FL_MEMBER(RawRow, name) Row name = 0;
  FL_RAW_TABLES(FL_MEMBER, FL_MEMBER)
#undef FL_MEMBER

  Row of_details(const auto& slice) const { return of_details(slice.kind); }
  Row of_details(HostKind kind) const { return is_call(kind) ? call_details : op_details; }
  Row of_details(DeviceKind kind) const {
    if (kind == DeviceKind::kKernel) return kernel_details;
    return kind == DeviceKind::kCopy || kind == DeviceKind::kSet ? copy_details : sync_details;
  }
  void pass(const RawPart& part) {
#define FL_PASS(RawRow, name) name += static_cast<Row>(part.count_of(part.name));
    FL_RAW_TABLES(FL_PASS, FL_PASS)
#undef FL_PASS
  }
};

// New ids for those of a pool.
struct PoolMap {
  std::vector<StringId> strings;
  std::vector<LaneId> lanes;

  void operator()(StringId& id) const { id = strings[static_cast<uint32_t>(id)]; }
  void operator()(LaneId& id) const { id = lanes[static_cast<uint32_t>(id)]; }
  void operator()(TraceId& id) const { (*this)(id.text); }
};

inline void shift(Row& row, Row by) {
  if (row != kNoRow) row += by;
}

// Renumbers the references in a part's rows: strings, lanes and rows of other tables.
template <typename RawRow>
void renumber(RawVector<RawRow>& rows, const PoolMap& map, const PartBase& base) {
  for (RawRow& row : rows) {
    RawRow::each_field(row, [&]<typename T>(auto, T& value) {
      if constexpr (std::is_same_v<T, DetailRow>) {
        shift(value.row, base.of_details(row));
      } else if constexpr (std::is_same_v<T, CommRow>) {
        shift(value.row, base.comm_details);
      } else if constexpr (std::is_same_v<T, OpRow>) {
        shift(value.row, base.op_details);
      } else if constexpr (std::is_invocable_v<const PoolMap&, T&>) {
        map(value);
      }
    });
  }
}

}  // namespace firelane

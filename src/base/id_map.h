// A hash map from 64-bit ids to rows, for joins: filled once, then looked up.
// The first row wins when an id comes twice.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.h"

namespace firelane {

class IdMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit IdMap(size_t expected) {
    size_t slots = 16;
    while (slots < expected * 2) slots *= 2;
    slots_.resize(slots);
  }

  // REQUIRES: fewer ids than the `expected` of the constructor (it does not grow); row != kNone.
  void insert(int64_t id, uint32_t row) {
    Slot& slot = find_slot(id);
    if (slot.row == kNone) slot = {.id = id, .row = row};
  }
  uint32_t find(int64_t id) const { return const_cast<IdMap*>(this)->find_slot(id).row; }

 private:
  struct Slot {
    int64_t id = 0;
    uint32_t row = kNone;
  };
  // Ids of a trace come in dense runs: neighbours share cache lines when the low bits are kept.
  Slot& find_slot(int64_t id) {
    const size_t mask = slots_.size() - 1;
    size_t at = (static_cast<uint64_t>(id) ^ (static_cast<uint64_t>(id) >> 32)) & mask;
    size_t step = 0;
    while (slots_[at].row != kNone && slots_[at].id != id) {
      // Linear at first, then scattered: hostile ids must not make one long run.
      at = ++step < 8 ? (at + 1) & mask : mix_hash(static_cast<uint64_t>(id), step) & mask;
    }
    return slots_[at];
  }

  std::vector<Slot> slots_;
};

}  // namespace firelane

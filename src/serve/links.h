// The arrows of a trace read backwards: which device work a launch queued, which backward ops a forward op has.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model/model.h"

namespace firelane::serve {

class LinkIndex {
 public:
  struct Link {
    Row from = kNoRow;  // host slice
    Row to = kNoRow;
  };

  explicit LinkIndex(const Model& model);

  // Device work whose launching call (its op, when the call is not in the trace) lies in [begin, end) of host_slices.
  std::span<const Link> device_work(Row begin, Row end) const { return within(device_work_, begin, end); }
  // Backward ops (host slices) of the forward op `row`.
  std::span<const Link> backward(Row row) const { return within(backward_, row, row + 1); }

 private:
  static std::span<const Link> within(const std::vector<Link>& links, Row begin, Row end);

  std::vector<Link> device_work_;  // by from
  std::vector<Link> backward_;     // by from
};

}  // namespace firelane::serve

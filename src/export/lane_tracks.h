// Splits the slices of a lane into tracks on which slices nest: what formats of begins and
// ends need. A lane without overlaps is one track. A slice that would end after the one
// around it goes to the next track where it fits, so that none is lost or cut.
#pragma once

#include <cstddef>
#include <vector>

#include "model/model.h"

namespace firelane::exporter {

// Calls begin(track, row) and end(track, row) for rows [first, last) of one lane. On each
// track the calls come in time order, properly nested. Returns the number of tracks.
template <typename Slices, typename Begin, typename End>
size_t split_into_tracks(const Slices& slices, Row first, Row last, const Begin& begin, const End& end) {
  std::vector<std::vector<Row>> open;  // per track, innermost last
  const auto close_until = [&](size_t track, int64_t time) {
    while (!open[track].empty() && slices.end_ns(open[track].back()) <= time) {
      end(track, open[track].back());
      open[track].pop_back();
    }
  };
  for (Row row = first; row < last; ++row) {
    size_t track = 0;
    for (;; ++track) {
      if (track == open.size()) open.emplace_back();
      close_until(track, slices.start_ns[row]);
      if (open[track].empty() || slices.end_ns(row) <= slices.end_ns(open[track].back())) break;
    }
    begin(track, row);
    open[track].push_back(row);
  }
  for (size_t track = 0; track < open.size(); ++track) close_until(track, INT64_MAX);
  return open.size();
}

}  // namespace firelane::exporter

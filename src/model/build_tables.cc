// Turns the rows of all parts into the model's columns: slices sorted by (lane, start,
// longer first, file order), details in file order, points in time order.
#include <algorithm>
#include <type_traits>
#include <unordered_map>

#include "base/hash.h"
#include "base/parallel.h"
#include "base/run_sort.h"
#include "model/assemble.h"

namespace firelane {

namespace {

constexpr size_t kFreedTogether = size_t{1} << 15;  // rows

// Where rows go: the rows of all parts, one after the other.
struct Places {
  std::vector<size_t> first;  // of each part; and their number
  std::vector<Row> place;
};

// The inverse of an order. Neighbours in it are mostly of one part, or of two that take turns.
template <typename RawRow>
Places invert(const RawTrace& raw, RawVector<RawRow> RawPart::* rows, const std::vector<const RawRow*>& order,
              unsigned threads) {
  Places out{.first = {0}, .place = std::vector<Row>(order.size())};
  struct Rows {
    const RawRow* begin;
    const RawRow* end;
    size_t first;
    bool has(const RawRow* row) const { return begin <= row && row < end; }
  };
  std::vector<Rows> parts;
  for (const RawPart& part : raw.parts) {
    const RawVector<RawRow>& of_part = part.*rows;
    if (!of_part.empty()) parts.push_back({of_part.data(), of_part.data() + of_part.size(), out.first.back()});
    out.first.push_back(out.first.back() + of_part.size());
  }
  std::ranges::sort(parts, {}, &Rows::begin);
  parallel_ranges(order.size(), threads, [&](size_t begin, size_t end) {
    const Rows* last = parts.data();
    const Rows* before = last;
    for (size_t i = begin; i < end; ++i) {
      if (!last->has(order[i])) {
        std::swap(last, before);
        if (!last->has(order[i])) last = &*(std::ranges::upper_bound(parts, order[i], {}, &Rows::begin) - 1);
      }
      out.place[last->first + static_cast<size_t>(order[i] - last->begin)] = static_cast<Row>(i);
    }
  });
  return out;
}

// Where all rows of one kind go, sorted as slices are. Fills begin/end of each lane.
template <typename RawRow>
Places sort_by_lane(RawTrace& raw, RawVector<RawRow> RawPart::* rows, const std::vector<LaneId>& lane_map,
                    std::vector<Row>& begin, std::vector<Row>& end, unsigned threads) {
  const size_t lane_count = begin.size();
  const auto lane_of = [&](const RawRow& row) {
    return static_cast<size_t>(lane_map[static_cast<uint32_t>(row.lane)]);
  };
  std::vector<size_t> next(lane_count + 1, 0);
  for (const RawPart& part : raw.parts) {
    for (const RawRow& row : part.*rows) ++next[lane_of(row) + 1];
  }
  for (size_t lane = 0; lane < lane_count; ++lane) {
    begin[lane] = static_cast<Row>(next[lane]);
    next[lane + 1] += next[lane];
    end[lane] = static_cast<Row>(next[lane + 1]);
  }
  std::vector<const RawRow*> order(next[lane_count]);
  for (const RawPart& part : raw.parts) {
    for (const RawRow& row : part.*rows) order[next[lane_of(row)]++] = &row;
  }
  const auto before = [](const RawRow* a, const RawRow* b) {
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->duration_ns > b->duration_ns;
  };
  parallel_ranges(
      lane_count, threads,
      [&](size_t first, size_t last) {
        for (size_t lane = first; lane < last; ++lane)
          run_sort(order.data() + begin[lane], end[lane] - begin[lane], before);
      },
      1);
  return invert(raw, rows, order, threads);
}

// Calls set(place, row) for each row and frees it: a table and the rows that it is made of are not in memory at once.
template <typename RawRow, typename Set>
void take_rows(RawTrace& raw, RawVector<RawRow> RawPart::* rows, const Places& places, unsigned threads,
               const Set& set) {
  struct Piece {
    RawPart* part;
    size_t first;  // in `places`
    size_t begin, end;
  };
  std::vector<Piece> pieces;
  for (size_t part = 0; part < raw.parts.size(); ++part) {
    const size_t count = (raw.parts[part].*rows).size();
    for (size_t begin = 0; begin < count; begin += kFreedTogether) {
      pieces.push_back({&raw.parts[part], places.first[part], begin, std::min(count, begin + kFreedTogether)});
    }
  }
  parallel_each(pieces.size(), places.place.size() < 4096 ? 1 : threads, [&](size_t i) {
    const auto& [part, first, begin, end] = pieces[i];
    RawRow* const of_part = (part->*rows).data();
    for (size_t row = begin; row < end; ++row) set(places.place[first + row], of_part[row]);
    release_pages(of_part + begin, of_part + end);
  });
  for (RawPart& part : raw.parts) part.free_rows(part.*rows);
}

template <typename RawRow>
size_t count_rows(const RawTrace& raw, RawVector<RawRow> RawPart::* rows) {
  size_t count = 0;
  for (const RawPart& part : raw.parts) count += part.count_of(part.*rows);
  return count;
}

// What stands in a column for a raw row's value: the lane's new id, all else as it is.
struct ColumnMap {
  const std::vector<LaneId>& lanes;
  LaneId operator()(LaneId lane) const { return lanes[static_cast<uint32_t>(lane)]; }
  template <typename T>
  T operator()(const T& value) const {
    return value;
  }
};

template <typename RawRow>
int64_t time_of(const RawRow& row) {
  int64_t time_ns = 0;
  RawRow::each_field(row, [&]<Use use, typename T>(UseIs<use>, const T& value) {
    if constexpr (is_time(use)) time_ns = value;
  });
  return time_ns;
}

// All rows of one kind, sorted by time.
template <typename RawRow>
std::vector<RawRow> take_sorted(RawTrace& raw, RawVector<RawRow> RawPart::* rows) {
  std::vector<RawRow> all;
  all.reserve(count_rows(raw, rows));
  for (const RawPart& part : raw.parts) all.insert(all.end(), (part.*rows).begin(), (part.*rows).end());
  for (RawPart& part : raw.parts) part.free_rows(part.*rows);
  run_sort(all.data(), all.size(), [](const RawRow& a, const RawRow& b) { return time_of(a) < time_of(b); });
  return all;
}

// Calls fn(part, index of the first of its rows in the whole) for each part, on several threads.
template <typename RawRow, typename Fn>
void each_part(RawTrace& raw, RawVector<RawRow> RawPart::* rows, unsigned threads, const Fn& fn) {
  std::vector<size_t> first{0};
  for (const RawPart& part : raw.parts) {
    first.push_back(first.back() + part.count_of(part.*rows));
  }
  parallel_each(raw.parts.size(), first.back() < 4096 ? 1 : threads, [&](size_t i) { fn(raw.parts[i], first[i]); });
}

// Makes room for `count` rows, and one cell for each column in which all of them have the same value.
// Not inlined, as build_table() below: all tables in one function take the compiler long, and are no faster.
template <typename Table>
[[gnu::noinline]] void make_room(RawTrace& raw, RawVector<typename Table::Raw> RawPart::* rows, size_t count,
                                 Table& out, const ColumnMap& map, unsigned threads) {
  const auto filled = std::find_if(raw.parts.begin(), raw.parts.end(),
                                   [&](const RawPart& part) { return part.count_of(part.*rows) > 0; });
  if (filled == raw.parts.end()) return out.resize(0);
  const typename Table::Raw first = filled->first_row(*filled.*rows);
  std::vector<typename Table::Differing> of_parts(raw.parts.size());
  parallel_each(raw.parts.size(), count < 4096 ? 1 : threads, [&](size_t i) {
    typename Table::Differing differing;
    raw.parts[i].each_distinct_row(raw.parts[i].*rows, [&](const auto& row) { differing.compare(first, row); });
    of_parts[i] = differing;
  });
  typename Table::Differing differing;
  for (const auto& of_part : of_parts) differing.add(of_part);
  out.make_room(count, differing, first, map);
}

// Fills a table with the rows of all parts: by time, or, where they have none, in file order.
template <typename Table>
[[gnu::noinline]] void build_table(RawTrace& raw, RawVector<typename Table::Raw> RawPart::* rows, Table& out,
                                   const ColumnMap& map, unsigned threads) {
  make_room(raw, rows, count_rows(raw, rows), out, map, threads);
  if constexpr (Table::Raw::kIsTimed) {
    size_t next = 0;
    for (const auto& row : take_sorted(raw, rows)) out.set(next++, row, map);
  } else {
    // Each part's rows are freed as soon as they are in the table.
    each_part(raw, rows, threads, [&](RawPart& part, size_t next) {
      part.each_row(part.*rows, [&](const auto& row) { out.set(next++, row, map); });
      part.free_rows(part.*rows);
    });
  }
}

// A track is (process, name, series).
void build_counters(RawTrace& raw, Model& model) {
  std::unordered_map<uint64_t, uint32_t> tracks;
  for (const RawCounter& row : take_sorted(raw, &RawPart::counters)) {
    const TraceId pid = row.pid;
    const uint64_t key = mix_hash(mix_hash(static_cast<uint64_t>(pid.number), static_cast<uint32_t>(pid.text)),
                                  uint64_t{static_cast<uint32_t>(row.name)} << 32 | static_cast<uint32_t>(row.series));
    const auto [at, added] = tracks.try_emplace(key, static_cast<uint32_t>(model.counter_tracks.size()));
    if (added) {
      model.counter_tracks.pid.push_back(pid);
      model.counter_tracks.name.push_back(row.name);
      model.counter_tracks.series.push_back(row.series);
    }
    model.counter_samples.time_ns.push_back(row.time_ns);
    model.counter_samples.track.push_back(at->second);
    model.counter_samples.value.push_back(row.value);
  }
}

}  // namespace

void build_host_slices(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map, unsigned threads) {
  const ColumnMap map{lane_map};
  const Places places =
      sort_by_lane(raw, &RawPart::host_slices, lane_map, model.lanes.host_begin, model.lanes.host_end, threads);
  HostSlices& out = model.host_slices;
  make_room(raw, &RawPart::host_slices, places.place.size(), out, map, threads);
  take_rows(raw, &RawPart::host_slices, places, threads, [&](Row place, const RawHostSlice& row) {
    out.set(place, row, map);
    if (row.detail == kNoRow) return;
    (is_call(row.kind) ? model.call_details.slice : model.op_details.slice)[row.detail] = place;
  });
}

namespace {

class DeviceSliceBuilder {
 public:
  DeviceSliceBuilder(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map, unsigned threads)
      : raw_(raw), model_(model), lane_map_(lane_map), threads_(threads) {}

  void run() {
    if (has_shared_lanes()) unfold_plain_work();
    const Places places = sort_by_lane(raw_, &RawPart::device_slices, lane_map_, model_.lanes.device_begin,
                                       model_.lanes.device_end, threads_);
    const std::vector<Row> shift = insert_lanes_of_plain_work();
    make_room();
    take_rows(raw_, &RawPart::device_slices, places, threads_,
              [&](Row place, const RawDeviceSlice& row) { set(place + shift[lane(row.lane)], row); });
    parallel_each(raw_.parts.size(), threads_, [&](size_t i) { take_plain_work(raw_.parts[i]); });
  }

 private:
  size_t lane_of(const RawPart& part, const RawPlainWork& work) const {
    return lane(part.work_looks[static_cast<size_t>(work.look)].lane);
  }
  size_t lane(LaneId id) const { return static_cast<size_t>(lane_map_[static_cast<uint32_t>(id)]); }

  // By how many rows each lane moves.
  std::vector<Row> insert_lanes_of_plain_work() {
    std::vector<Row> shift(model_.lanes.size(), 0);
    std::vector<Row> rows(model_.lanes.size(), 0);
    for (const RawPart& part : raw_.parts) {
      for (const RawPlainWork& work : part.plain_work) ++rows[lane_of(part, work)];
    }
    Row before = 0;
    for (size_t lane = 0; lane < rows.size(); ++lane) {
      shift[lane] = before;
      model_.lanes.device_begin[lane] += before;
      before += rows[lane];
      model_.lanes.device_end[lane] += before;
    }
    return shift;
  }

  // Whether a lane has plain work of two parts, or other work beside it: then all of it has to be sorted as one.
  bool has_shared_lanes() const {
    std::vector<const RawPart*> owner(model_.lanes.size(), nullptr);
    for (const RawPart& part : raw_.parts) {
      for (const RawWorkLook& look : part.work_looks) {
        const RawPart*& of = owner[lane(look.lane)];
        if (of != nullptr && of != &part) return true;
        of = &part;
      }
    }
    for (const RawPart& part : raw_.parts) {
      if (std::any_of(part.device_slices.begin(), part.device_slices.end(),
                      [&](const RawDeviceSlice& row) { return owner[lane(row.lane)] != nullptr; })) {
        return true;
      }
    }
    return false;
  }

  void unfold_plain_work() {
    for (RawPart& part : raw_.parts) {
      for (const RawPlainWork& work : part.plain_work) part.device_slices.push_back(part.device_slice(work));
      RawVector<RawPlainWork>().swap(part.plain_work);
    }
  }

  void make_room() {
    const size_t count = model_.lanes.device_end.empty() ? 0 : model_.lanes.device_end.back();
    if (count == 0) return model_.device_slices.resize(0);
    RawDeviceSlice first;
    for (const RawPart& part : raw_.parts) {
      if (part.device_slices.empty() && part.plain_work.empty()) continue;
      first = part.device_slices.empty() ? part.device_slice(part.plain_work.front()) : part.device_slices.front();
      break;
    }
    std::vector<DeviceSlices::Differing> of_parts(raw_.parts.size());
    parallel_each(raw_.parts.size(), count < 4096 ? 1 : threads_, [&](size_t i) {
      DeviceSlices::Differing differing;
      const RawPart& part = raw_.parts[i];
      for (const RawDeviceSlice& row : part.device_slices) differing.compare(first, row);
      for (const RawPlainWork& work : part.plain_work) differing.compare(first, part.device_slice(work));
      of_parts[i] = differing;
    });
    DeviceSlices::Differing differing;
    for (const DeviceSlices::Differing& each : of_parts) differing.add(each);
    model_.device_slices.make_room(count, differing, first, ColumnMap{lane_map_});
  }

  void set(size_t at, const RawDeviceSlice& row) {
    model_.device_slices.set(at, row, ColumnMap{lane_map_});
    if (row.detail == kNoRow) return;
    Cells<Row>& slice = row.kind == DeviceKind::kKernel ? model_.kernel_details.slice
                        : row.kind == DeviceKind::kSync ? model_.sync_details.slice
                                                        : model_.copy_details.slice;
    slice[row.detail] = static_cast<Row>(at);
  }

  // The lanes of a part's plain work are its own.
  void take_plain_work(RawPart& part) {
    RawVector<RawPlainWork>& rows = part.plain_work;
    if (rows.empty()) return;
    const std::vector<Row> place = places_of_plain_work(part);
    for (size_t begin = 0; begin < rows.size(); begin += kFreedTogether) {
      const size_t end = std::min(rows.size(), begin + kFreedTogether);
      for (size_t row = begin; row < end; ++row) set(place[row], part.device_slice(rows[row]));
      release_pages(rows.data() + begin, rows.data() + end);
    }
    part.free_rows(rows);
  }

  std::vector<Row> places_of_plain_work(const RawPart& part) const {
    std::vector<Row> order(part.plain_work.size());
    std::vector<size_t> next(model_.lanes.size() + 1, 0);
    for (const RawPlainWork& work : part.plain_work) ++next[lane_of(part, work) + 1];
    for (size_t lane = 0; lane + 1 < next.size(); ++lane) next[lane + 1] += next[lane];
    const std::vector<size_t> begin = next;
    for (Row i = 0; i < order.size(); ++i) order[next[lane_of(part, part.plain_work[i])]++] = i;
    const auto before = [&](Row a, Row b) {
      const RawPlainWork& x = part.plain_work[a];
      const RawPlainWork& y = part.plain_work[b];
      return x.start_ns != y.start_ns ? x.start_ns < y.start_ns : x.duration_ns > y.duration_ns;
    };
    std::vector<Row> place(order.size());
    for (size_t lane = 0; lane + 1 < begin.size(); ++lane) {
      const size_t count = begin[lane + 1] - begin[lane];
      run_sort(order.data() + begin[lane], count, before);
      for (size_t i = 0; i < count; ++i) {
        place[order[begin[lane] + i]] = model_.lanes.device_begin[lane] + static_cast<Row>(i);
      }
    }
    return place;
  }

  RawTrace& raw_;
  Model& model_;
  const std::vector<LaneId>& lane_map_;
  unsigned threads_;
};

}  // namespace

void build_device_slices(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map, unsigned threads) {
  DeviceSliceBuilder(raw, model, lane_map, threads).run();
}

void build_other_tables(RawTrace& raw, Model& model, const std::vector<LaneId>& lane_map, unsigned threads) {
#define FL_BUILD(RawRow, name) build_table(raw, &RawPart::name, model.name, ColumnMap{lane_map}, threads);
#define FL_LEAVE(RawRow, name)
  FL_RAW_TABLES(FL_BUILD, FL_LEAVE)
#undef FL_LEAVE
#undef FL_BUILD
  build_counters(raw, model);
}

}  // namespace firelane

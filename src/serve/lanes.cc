// /api/t/T/lanes and /tiles: the layout of the timeline and what it shows.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "describe/lane_name.h"
#include "serve/handlers.h"
#include "serve/tiles.h"

namespace firelane::serve {

namespace {

constexpr int64_t kMostTiles = 16;
constexpr size_t kMostLanes = 64;

// Threads above the streams they feed, the rest below.
int shown_rank(LaneKind kind) {
  switch (kind) {
    case LaneKind::kThread: return 0;
    case LaneKind::kStream: return 1;
    case LaneKind::kAsync: return 2;
    case LaneKind::kOther: return 3;
  }
  return 4;
}

// If a device has more, the busiest come first: hundreds of streams may have a kernel each.
constexpr size_t kManyStreams = 16;
std::map<int64_t, size_t> streams_of_devices(const Model& model, const std::vector<analyze::LaneRow>& rows) {
  std::map<int64_t, size_t> streams;
  for (const analyze::LaneRow& row : rows) {
    const auto lane = static_cast<size_t>(row.lane);
    if (model.lanes.kind[lane] == LaneKind::kStream) ++streams[model.lanes.pid[lane].number];
  }
  return streams;
}

}  // namespace

Window wanted_window(Parameters& wanted, const ServedTrace& trace) {
  constexpr int64_t kFar = int64_t{1} << 60;  // sums with it still fit
  const int64_t end = std::max<int64_t>(1, trace.timeline().end_ns());
  Window window{.from_ns = wanted.integer("from_ns", 0, -kFar, kFar),
                .to_ns = wanted.integer("to_ns", end, -kFar, kFar)};
  const int64_t bins = wanted.integer("bins", 512, 1, 8192);
  window.to_ns = std::max(window.to_ns, window.from_ns + 1);
  window.bins = static_cast<size_t>(bins);
  window.bin_ns = std::max<int64_t>(1, (window.to_ns - window.from_ns + bins - 1) / bins);
  return window;
}

std::vector<SampledThread> sampled_threads(const Model& model) {
  std::vector<SampledThread> threads(model.lanes.size());
  for (size_t lane = 0; lane < threads.size(); ++lane) threads[lane].lane = static_cast<LaneId>(lane);
  for (const LaneId lane : model.stack_samples.lane) ++threads[static_cast<size_t>(lane)].samples;
  std::erase_if(threads, [](const SampledThread& thread) { return thread.samples == 0; });
  std::stable_sort(threads.begin(), threads.end(),
                   [](const SampledThread& a, const SampledThread& b) { return a.samples > b.samples; });
  return threads;
}

Answer lanes(const ServedTrace& trace, const Request&) {
  const Model& model = trace.model();
  std::vector<analyze::LaneRow> rows = trace.lane_rows();
  std::erase_if(rows, [](const analyze::LaneRow& row) { return row.slices == 0; });
  const std::map<int64_t, size_t> streams = streams_of_devices(model, rows);
  const auto place = [&](const analyze::LaneRow& row) {
    const auto lane = static_cast<size_t>(row.lane);
    const int rank = shown_rank(model.lanes.kind[lane]);
    if (model.lanes.kind[lane] != LaneKind::kStream) return std::tuple<int, int64_t, int64_t>{rank, 0, 0};
    const int64_t device = model.lanes.pid[lane].number;
    return std::tuple<int, int64_t, int64_t>{rank, device, streams.at(device) > kManyStreams ? -row.busy_ns : 0};
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const analyze::LaneRow& a, const analyze::LaneRow& b) { return place(a) < place(b); });
  JsonWriter json;
  json.begin_object().field("end_ns", trace.timeline().end_ns()).key("lanes").begin_array();
  for (const analyze::LaneRow& row : rows) {
    const auto lane = static_cast<size_t>(row.lane);
    json.begin_object().field("id", lane).field("group", describe::process_name(model, row.lane));
    json.field("kind", name_of(model.lanes.kind[lane])).field("name", describe::lane_name(model, row.lane));
    json.field("rows", trace.timeline().lanes()[lane].rows.size()).field("slices", row.slices);
    json.field("first_ns", row.first_ns).field("last_ns", row.last_ns).field("busy_ns", row.busy_ns).end_object();
  }
  json.end_array().key("counters").begin_array();
  for (size_t id = 0; id < trace.counters().size(); ++id) {
    const CounterTrack& track = trace.counters()[id];
    json.begin_object().field("id", id).field("group", track.group).field("name", track.name);
    json.field("unit", track.unit).field("min", track.min).field("max", track.max);
    json.field("samples", track.times_ns.size()).end_object();
  }
  json.end_array().key("steps").begin_array();
  const Steps& steps = trace.step_marks();
  for (size_t i = 0; i < steps.size(); ++i) {
    json.begin_object().field("number", steps.number[i]).field("start_ns", steps.start_ns[i]);
    json.field("duration_ns", steps.duration_ns[i]).end_object();
  }
  json.end_array().key("sampled").begin_array();
  for (const SampledThread& thread : sampled_threads(model)) {
    json.begin_object().field("id", static_cast<size_t>(thread.lane));
    json.field("name", describe::lane_name(model, thread.lane)).field("samples", thread.samples).end_object();
  }
  json.end_array().end_object();
  return json_answer(std::move(json));
}

Answer tiles(const ServedTrace& trace, const Request& request) {
  Parameters wanted(request);
  const auto level = static_cast<uint32_t>(wanted.integer("level", 0, 0, kMaxLevel));
  const int64_t first = wanted.integer("first", 0, 0, int64_t{1} << 52);
  const int64_t count = wanted.integer("count", 1, 1, kMostTiles);
  const auto all = static_cast<int64_t>(trace.model().lanes.size());
  std::optional<std::vector<int64_t>> asked = wanted.list("lanes", kMostLanes, std::max<int64_t>(0, all - 1));
  if (!wanted.ok()) return bad_request(wanted);
  if (!asked) return refusal(400, "lanes is missing: give lane ids, separated by commas");
  std::vector<Tile> made;
  for (const int64_t lane : *asked) {
    for (int64_t index = first; index < first + count; ++index) {
      made.push_back(make_tile(trace.timeline(), static_cast<uint32_t>(lane), level, static_cast<uint64_t>(index)));
    }
  }
  return {.type = kBinaryType, .body = encode_tiles(trace.model(), level, made)};
}

}  // namespace firelane::serve

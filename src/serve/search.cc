// /api/t/T/search, /find and /gap: names, the next slice of a name, the next time a device did nothing.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "analyze/common/intervals.h"
#include "report/step_parts.h"
#include "serve/handlers.h"
#include "serve/places.h"

namespace firelane::serve {

namespace {

constexpr size_t kMostNames = 200;
constexpr int64_t kMostBins = 4096;
constexpr int64_t kUsualLeastGapNs = 10'000;

enum class Direction : int64_t { kPrevious = -1, kLongest = 0, kNext = 1 };

struct Place {
  int64_t from_ns = 0;
  Direction direction = Direction::kNext;
  int64_t lane = -1;  // -1 = all
};

Place wanted_place(Parameters& wanted, const ServedTrace& trace) {
  const auto lanes = static_cast<int64_t>(trace.model().lanes.size());
  return {.from_ns = wanted.integer("from_ns", -1, -1, INT64_MAX),
          .direction = static_cast<Direction>(wanted.integer("direction", 1, -1, 1)),
          .lane = wanted.integer("lane", -1, 0, std::max<int64_t>(0, lanes - 1))};
}

bool is_on(const Model& model, uint32_t ref, int64_t lane) {
  return lane < 0 || static_cast<int64_t>(static_cast<uint32_t>(lane_of(model, slice_of(ref)))) == lane;
}

// The first slice of one name after (before) a moment that lies on the lane.
std::optional<uint32_t> nearest(const Model& model, std::span<const uint32_t> refs, const Place& place) {
  const auto starts_by = [&](uint32_t ref, bool or_at) {
    const int64_t start = start_of(model, slice_of(ref));
    return or_at ? start <= place.from_ns : start < place.from_ns;
  };
  if (place.direction == Direction::kNext) {
    auto at = std::partition_point(refs.begin(), refs.end(), [&](uint32_t ref) { return starts_by(ref, true); });
    while (at != refs.end() && !is_on(model, *at, place.lane)) ++at;
    return at == refs.end() ? std::nullopt : std::optional(*at);
  }
  auto at = std::partition_point(refs.begin(), refs.end(), [&](uint32_t ref) { return starts_by(ref, false); });
  while (at != refs.begin() && !is_on(model, *std::prev(at), place.lane)) --at;
  return at == refs.begin() ? std::nullopt : std::optional(*std::prev(at));
}

std::optional<uint32_t> longest(const Model& model, std::span<const uint32_t> refs, const Place& place) {
  std::optional<uint32_t> best;
  for (const uint32_t ref : refs) {
    if (!is_on(model, ref, place.lane)) continue;
    if (!best || duration_of(model, slice_of(ref)) > duration_of(model, slice_of(*best))) best = ref;
  }
  return best;
}

bool is_better(const Model& model, uint32_t a, uint32_t b, Direction direction) {
  const SliceRef first = slice_of(a);
  const SliceRef second = slice_of(b);
  switch (direction) {
    case Direction::kNext: return start_of(model, first) < start_of(model, second);
    case Direction::kPrevious: return start_of(model, first) > start_of(model, second);
    case Direction::kLongest: return duration_of(model, first) > duration_of(model, second);
  }
  return false;
}

// Times without work between the first and the last work of one lane.
std::vector<analyze::Interval> gaps_of(const Model& model, size_t lane) {
  std::vector<analyze::Interval> work;
  for (Row row = model.lanes.device_begin[lane]; row < model.lanes.device_end[lane]; ++row) {
    if (!is_device_work(model.device_slices.kind[row])) continue;
    work.push_back({model.device_slices.start_ns[row], model.device_slices.end_ns(row)});
  }
  const analyze::IntervalSet busy(std::move(work));
  std::vector<analyze::Interval> gaps;
  for (size_t i = 1; i < busy.intervals().size(); ++i) {
    gaps.push_back({busy.intervals()[i - 1].end_ns, busy.intervals()[i].start_ns});
  }
  return gaps;
}

std::optional<analyze::Interval> choose(const std::vector<analyze::Interval>& gaps, const Place& place,
                                        int64_t least_ns) {
  std::optional<analyze::Interval> best;
  for (const analyze::Interval& gap : gaps) {
    const int64_t length = gap.end_ns - gap.start_ns;
    if (length < least_ns) continue;
    switch (place.direction) {
      case Direction::kNext:
        if (gap.start_ns > place.from_ns && !best) best = gap;
        break;
      case Direction::kPrevious:
        if (gap.start_ns < place.from_ns) best = gap;
        break;
      case Direction::kLongest:
        if (!best || length > best->end_ns - best->start_ns) best = gap;
        break;
    }
  }
  return best;
}

// The stream with the most work.
std::optional<size_t> busiest_stream(const Model& model) {
  std::optional<size_t> best;
  const auto count = [&](size_t lane) { return model.lanes.device_end[lane] - model.lanes.device_begin[lane]; };
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    if (count(lane) > 0 && (!best || count(lane) > count(*best))) best = lane;
  }
  return best;
}

// What most of a stretch was idle for; another stream's work where no time of it was.
void write_cause(JsonWriter& json, const analyze::Study& study, const analyze::Interval& gap) {
  const analyze::IdleTimes times = study.idle.times_in(gap.start_ns, gap.end_ns);
  const auto most = std::max_element(times.begin(), times.end());
  if (*most > 0) {
    const auto cause = static_cast<analyze::IdleCause>(most - times.begin());
    json.field("cause", analyze::name_of(cause)).field("cause_text", report::idle_words(study, cause));
    return;
  }
  const analyze::Interval& window = study.idle.window;
  const bool is_outside = gap.start_ns < window.start_ns || gap.end_ns > window.end_ns;
  const std::string_view cause = is_outside ? "outside the analyzed steps" : "another stream works";
  json.field("cause", cause).field("cause_text", cause);
}

}  // namespace

Answer search(const ServedTrace& trace, const Request& request) {
  Parameters wanted(request);
  const std::string text = wanted.text("text");
  const bool exact = wanted.truth("exact");
  const int64_t bins = wanted.integer("bins", 512, 0, kMostBins);
  if (!wanted.ok()) return bad_request(wanted);
  if (text.empty()) return refusal(400, "text is missing: give the part of a name");
  const Model& model = trace.model();
  const NameIndex& index = trace.names();
  std::vector<StringId> names = index.find(model, text, exact);
  const auto end = std::max<int64_t>(1, trace.timeline().end_ns());
  const int64_t bin_ns = bins == 0 ? 1 : std::max<int64_t>(1, end / bins + (end % bins != 0 ? 1 : 0));
  std::vector<int64_t> density(static_cast<size_t>(bins));
  size_t slices = 0;
  for (const StringId name : names) {
    slices += index.slices(name).size();
    if (bins == 0) continue;
    for (const uint32_t ref : index.slices(name)) {
      ++density[std::min(density.size() - 1, static_cast<size_t>(start_of(model, slice_of(ref)) / bin_ns))];
    }
  }
  std::sort(names.begin(), names.end(), [&](StringId a, StringId b) {
    return index.total_ns(a) != index.total_ns(b) ? index.total_ns(a) > index.total_ns(b) : a < b;
  });
  if (names.size() > kMostNames) names.resize(kMostNames);
  JsonWriter json;
  json.begin_object().field("slices", slices).key("names").begin_array();
  for (const StringId name : names) {
    json.begin_object().field("name", model.text(name)).field("slices", index.slices(name).size());
    json.field("total_ns", index.total_ns(name)).end_object();
  }
  json.end_array().key("density").begin_array();
  for (const int64_t count : density) json.value(count);
  json.end_array().end_object();
  return json_answer(std::move(json));
}

Answer find(const ServedTrace& trace, const Request& request) {
  Parameters wanted(request);
  const std::string text = wanted.text("text");
  const bool exact = wanted.truth("exact");
  const Place place = wanted_place(wanted, trace);
  if (!wanted.ok()) return bad_request(wanted);
  const Model& model = trace.model();
  const NameIndex& index = trace.names();
  std::optional<uint32_t> best;
  for (const StringId name : index.find(model, text, exact)) {
    const auto refs = index.slices(name);
    const auto found =
        place.direction == Direction::kLongest ? longest(model, refs, place) : nearest(model, refs, place);
    if (found && (!best || is_better(model, *found, *best, place.direction))) best = found;
  }
  JsonWriter json;
  json.begin_object().key("slice");
  write_found(json, model, trace.timeline(), best ? slice_of(*best) : SliceRef{});
  json.end_object();
  return json_answer(std::move(json));
}

Answer gap(const ServedTrace& trace, const Request& request) {
  Parameters wanted(request);
  const Place place = wanted_place(wanted, trace);
  const int64_t least_ns = wanted.integer("min_ns", kUsualLeastGapNs, 0, INT64_MAX);
  if (!wanted.ok()) return bad_request(wanted);
  const Model& model = trace.model();
  const std::optional<size_t> lane = place.lane < 0 ? busiest_stream(model) : static_cast<size_t>(place.lane);
  const std::optional<analyze::Interval> found = lane ? choose(gaps_of(model, *lane), place, least_ns) : std::nullopt;
  JsonWriter json;
  json.begin_object().key("gap");
  if (found) {
    json.begin_object().field("lane", *lane).field("start_ns", found->start_ns);
    json.field("duration_ns", found->end_ns - found->start_ns);
    write_cause(json, trace.study(), *found);
    json.end_object();
  } else {
    json.null();
  }
  json.end_object();
  return json_answer(std::move(json));
}

}  // namespace firelane::serve

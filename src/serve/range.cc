// /api/t/T/range and /flame: what happened in a stretch of time, as tables and as a flame graph.
#include "analyze/trace/range.h"

#include <string>

#include "analyze/ops/flame.h"
#include "describe/lane_name.h"
#include "model/how_to_record.h"
#include "report/described.h"
#include "serve/handlers.h"

namespace firelane::serve {

namespace {

using report::Kind;

template <typename Row>
std::string kind_of(const Row& row) {
  return std::string(row.on_device ? name_of(row.device_kind) : name_of(row.host_kind));
}

report::Report range_report(const Model& model, const analyze::RangeSums& sums) {
  const int64_t length = sums.range.end_ns - sums.range.start_ns;
  const auto share = [&](int64_t ns) { return 100.0 * static_cast<double>(ns) / static_cast<double>(length); };
  report::Report report{.title = "Range",
                        .facts = {{"from_ns", "From", Kind::kDuration, sums.range.start_ns},
                                  {"to_ns", "To", Kind::kDuration, sums.range.end_ns},
                                  {"duration_ns", "Duration", Kind::kDuration, length}}};
  report::Table lanes{.name = "lanes",
                      .title = "Lanes",
                      .columns = {{"lane", "Id", Kind::kNumber},
                                  {"group", "Group"},
                                  {"lane_name", "Lane"},
                                  {"slices", "Slices", Kind::kNumber},
                                  {"busy_ns", "Busy", Kind::kDuration},
                                  {"busy_percent", "Of the range", Kind::kPercent}}};
  for (const analyze::RangeLane& row : sums.lanes) {
    lanes.add({int64_t{static_cast<uint32_t>(row.lane)}, describe::process_name(model, row.lane),
               describe::lane_name(model, row.lane), row.slices, row.busy_ns, share(row.busy_ns)});
  }
  report::Table kinds{.name = "kinds",
                      .title = "Kinds",
                      .columns = {{"side", "Side"},
                                  {"kind", "Kind"},
                                  {"count", "Count", Kind::kNumber},
                                  {"total_ns", "Total", Kind::kDuration},
                                  {"self_ns", "Self", Kind::kDuration}}};
  for (const analyze::RangeKind& row : sums.kinds) {
    kinds.add({std::string(row.on_device ? "device" : "host"), kind_of(row), row.count, row.total_ns, row.self_ns});
  }
  report::Table names{.name = "names",
                      .title = "Names",
                      .columns = {{"name", "Name"},
                                  {"kind", "Kind"},
                                  {"count", "Count", Kind::kNumber},
                                  {"total_ns", "Total", Kind::kDuration},
                                  {"self_ns", "Self", Kind::kDuration},
                                  {"mean_ns", "Mean", Kind::kDuration}}};
  for (const analyze::RangeName& row : sums.names) {
    names.add({std::string(model.text(row.name)), kind_of(row), row.count, row.total_ns, row.self_ns,
               row.total_ns / std::max<int64_t>(1, row.count)});
  }
  report.tables = {std::move(lanes), std::move(kinds), std::move(names)};
  report.notes = {"slices that cross the edges of the range count only with the part inside it"};
  return report;
}

}  // namespace

Answer range(const ServedTrace& trace, const Request& request) {
  Parameters wanted(request);
  const Window window = wanted_window(wanted, trace);
  const size_t rows = wanted_rows(wanted);
  const auto all = static_cast<int64_t>(trace.model().lanes.size());
  const auto asked = wanted.list("lanes", 4096, std::max<int64_t>(0, all - 1));
  if (!wanted.ok()) return bad_request(wanted);
  std::optional<std::vector<LaneId>> lanes;
  if (asked && !asked->empty()) {
    lanes.emplace();
    for (const int64_t lane : *asked) {
      if (lane < all) lanes->push_back(static_cast<LaneId>(lane));
    }
  }
  const analyze::RangeSums sums = analyze::range_sums(trace.model(), {window.from_ns, window.to_ns}, lanes);
  return {.body = report::described(range_report(trace.model(), sums), rows)};
}

Answer flame(const ServedTrace& trace, const Request& request) {
  const Model& model = trace.model();
  Parameters wanted(request);
  const Window window = wanted_window(wanted, trace);
  const auto all = static_cast<int64_t>(model.lanes.size());
  analyze::FlameOptions options{
      .order = static_cast<analyze::FlameOrder>(wanted.choice("order", {"time", "left-heavy", "inverted"})),
      .by = static_cast<analyze::FlameBy>(wanted.choice("by", {"stack", "op", "sample"})),
      .range = {window.from_ns, window.to_ns},
      .bins = static_cast<size_t>(wanted.integer("bins", 1000, 1, 8192)),
  };
  const int64_t lane = wanted.integer("lane", -1, 0, std::max<int64_t>(0, all - 1));
  if (!wanted.ok()) return bad_request(wanted);
  if (lane >= 0 && lane < all) options.lane = static_cast<LaneId>(lane);
  analyze::FlameGraph graph = analyze::flame_graph(model, options);
  std::string note;
  if (!graph.has_frames && options.by != analyze::FlameBy::kOp) {
    note = (options.by == analyze::FlameBy::kSample
                ? std::string("the trace has no samples: record with firelane record --sample")
                : "the trace has no Python frames: " + how_to_record(model.info, RecordOption::kStacks)) +
           "; ops are shown instead";
    options.by = analyze::FlameBy::kOp;
    graph = analyze::flame_graph(model, options);
  }
  if (!graph.has_frames) note = "the trace has no ops on any thread";
  JsonWriter json;
  json.begin_object().field("total_ns", graph.total_ns).field("note", note).key("nodes").begin_array();
  for (const analyze::FlameNode& node : graph.nodes) {
    json.begin_array().value(node.depth).value(node.start_ns).value(node.width_ns);
    if (node.merged > 0) {
      json.value("(" + std::to_string(node.merged) + " more)");
    } else {
      json.value(model.text(node.name));
    }
    json.value(node.self_ns).value(node.count).end_array();
  }
  json.end_array().end_object();
  return json_answer(std::move(json));
}

}  // namespace firelane::serve

#include "serve/comparison.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "compare/flame/flame.h"
#include "report/described.h"
#include "serve/handlers.h"

namespace firelane::serve {

namespace {

constexpr size_t kMostRuns = 1000;

struct SideTrace {
  std::string path;
  std::shared_ptr<const StudiedTrace> studied;
};
using Side = std::vector<SideTrace>;

// The traces of a request, or why there are none.
struct Wanted {
  Side before;
  Side after;
  std::optional<Answer> refused;
};

std::optional<Answer> add_trace(const TraceSet& traces, size_t id, Side& side) {
  const TraceSet::Status status = traces.status(id);
  if (status.state == TraceSet::State::kFailed) return refusal(409, status.error);
  const std::shared_ptr<const StudiedTrace> studied = traces.trace(id);
  if (studied == nullptr) return refusal(409, "a trace is being loaded; /api/traces shows the progress");
  side.push_back({traces.path(id), studied});
  return std::nullopt;
}

Wanted wanted_sides(const TraceSet& traces, const Comparison& usual, Parameters& wanted) {
  Wanted out;
  const auto last = static_cast<int64_t>(traces.size()) - 1;
  const auto ids_of = [&](std::string_view name, const std::vector<size_t>& otherwise) {
    const auto given = wanted.list(name, kMostRuns, std::max<int64_t>(0, last));
    return given && !given->empty() ? std::vector<size_t>(given->begin(), given->end()) : otherwise;
  };
  const std::vector<size_t> before = ids_of("before", usual.before);
  const std::vector<size_t> after = ids_of("after", usual.after);
  if (!wanted.ok()) return out;
  if (before.empty() || after.empty()) {
    out.refused = refusal(404, "there is only one trace: firelane view BEFORE AFTER opens two");
    return out;
  }
  for (const size_t id : before) {
    if (!out.refused) out.refused = add_trace(traces, id, out.before);
  }
  for (const size_t id : after) {
    if (!out.refused) out.refused = add_trace(traces, id, out.after);
  }
  return out;
}

std::vector<compare::Run> runs_of(const Side& side) {
  std::vector<compare::Run> runs;
  for (const SideTrace& trace : side) {
    runs.push_back(trace.studied->get<compare::summarize>());
    runs.back().path = trace.path;
  }
  return runs;
}

// Notes name runs by their paths: where a page is sent to, folders of this machine mean nothing.
std::vector<compare::Run> named(std::vector<compare::Run> runs) {
  for (compare::Run& run : runs) run.path = std::filesystem::path(run.path).filename().string();
  return runs;
}

std::vector<const StudiedTrace*> pointers(const Side& side) {
  std::vector<const StudiedTrace*> out;
  for (const SideTrace& trace : side) out.push_back(trace.studied.get());
  return out;
}

}  // namespace

Comparison completed(Comparison comparison, size_t traces) {
  if (comparison.before.empty() && comparison.after.empty() && traces > 1) {
    comparison.before = {0};
    comparison.after = {1};
  }
  return comparison;
}

Answer compared(const TraceSet& traces, const Comparison& usual, const Request& request) {
  Parameters wanted(request);
  compare::JudgeOptions judge = usual.judge;
  judge.threshold = wanted.number("threshold", 100 * judge.threshold, 0, 1000) / 100;
  judge.alpha = wanted.number("alpha", judge.alpha, 0.0001, 0.5);
  const size_t rows = wanted_rows(wanted);
  const Wanted sides = wanted_sides(traces, usual, wanted);
  if (!wanted.ok()) return bad_request(wanted);
  if (sides.refused) return *sides.refused;
  const compare::Difference difference =
      compare::compare_sides(named(runs_of(sides.before)), named(runs_of(sides.after)), judge);
  report::Report report = report::comparison_report(difference, 0);
  report.title = "Comparison";
  return {.body = report::described(report, rows)};
}

Answer compared_flame(const TraceSet& traces, const Comparison& usual, const Request& request) {
  Parameters wanted(request);
  compare::FlameOptions options{.by = static_cast<compare::FlameBy>(wanted.choice("by", {"device", "stack", "op"})),
                                .bins = static_cast<size_t>(wanted.integer("bins", 1000, 1, 8192))};
  const Wanted sides = wanted_sides(traces, usual, wanted);
  if (!wanted.ok()) return bad_request(wanted);
  if (sides.refused) return *sides.refused;
  compare::JudgeOptions judge = usual.judge;
  judge.with_range = false;
  options.batch_ratio = compare::compare_sides(runs_of(sides.before), runs_of(sides.after), judge).batch_ratio;
  const compare::FlameDifference flame =
      compare::flame_difference(pointers(sides.before), pointers(sides.after), options);
  JsonWriter json;
  json.begin_object().field("before_ns", flame.before_ns).field("after_ns", flame.after_ns).field("note", flame.note);
  json.key("nodes").begin_array();
  for (const compare::FlameChange& node : flame.nodes) {
    json.begin_array().value(node.depth);
    if (node.merged > 0) {
      json.value("(" + std::to_string(node.merged) + " more)");
    } else {
      json.value(node.name);
    }
    json.value(node.before_ns).value(node.after_ns).end_array();
  }
  json.end_array().end_object();
  return json_answer(std::move(json));
}

Answer compared_runs(const TraceSet& traces, const Comparison& usual, const Request& request) {
  Parameters wanted(request);
  report::RunsOptions options{.by = usual.by.value_or(report::RunsBy::kFile), .price_per_hour = usual.price_per_hour};
  if (request.find("by") != nullptr) {
    options.by = static_cast<report::RunsBy>(wanted.choice("by", {"file", "model", "batch"}));
  }
  options.price_per_hour = wanted.number("price_per_hour", options.price_per_hour, 0, 1e9);
  const size_t rows = wanted_rows(wanted);
  if (!wanted.ok()) return bad_request(wanted);
  Side all;
  for (size_t id = 0; id < traces.size(); ++id) {
    if (traces.status(id).state == TraceSet::State::kFailed) continue;  // the list of traces says why
    if (const std::optional<Answer> refused = add_trace(traces, id, all)) return *refused;
  }
  report::Report report = report::runs_report(runs_of(all), options);
  report.title = "Runs";
  return {.body = report::described(report, rows)};
}

}  // namespace firelane::serve

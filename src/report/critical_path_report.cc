// `firelane critical-path`: the chain of dependencies that decides how long a step takes. With all of its pieces they
// are in order of time, with some of them the longest first.
#include <algorithm>

#include "advise/verdict.h"
#include "analyze/graph/data_chain.h"
#include "analyze/verdict/study.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

// Why each piece of the path was not earlier.
struct EdgeWords {
  analyze::EdgeKind kind;
  std::string_view meaning;
};
constexpr EdgeWords kEdgeWords[] = {
    {analyze::EdgeKind::kHost, "earlier work on the same thread"},
    {analyze::EdgeKind::kLaunch, "the launch of device work"},
    {analyze::EdgeKind::kData, "data of other device work, from the execution trace"},
    {analyze::EdgeKind::kStream, "the previous work on the same stream"},
    {analyze::EdgeKind::kOtherStream, "work of another stream"},
    {analyze::EdgeKind::kSync, "device work that a call waited for"},
    {analyze::EdgeKind::kQueue, "room in the launch queue"},
    {analyze::EdgeKind::kHandoff, "another thread"},
};

Table edges_table(const analyze::CriticalPath& path) {
  Table table{.name = "edges",
              .title = "What the path follows",
              .columns = {{"edge", "Edge"},
                          {"time_ns", "Time", Kind::kDuration},
                          {"share_percent", "Share", Kind::kPercent},
                          {"meaning", "Waits for"}},
              .hide_if_empty = true};
  const auto add = [&](std::string_view name, int64_t time_ns, std::string_view meaning) {
    if (time_ns == 0) return;
    table.add({std::string(name), time_ns, percent_of(time_ns, path.total_ns), std::string(meaning)});
  };
  for (const EdgeWords& words : kEdgeWords) {
    add(analyze::name_of(words.kind), path.by_edge[static_cast<size_t>(words.kind)], words.meaning);
  }
  add("begin", path.by_edge[analyze::kEdgeKindCount], "nothing: the start of the steps");
  return table;
}

// What the execution trace adds: the longest chain of data, and the step if nothing but data decided the order.
void add_data_facts(const analyze::DataChain& chain, const analyze::Study& study, Report& report) {
  report.facts.push_back({"data_dependencies", "Data dependencies", Kind::kNumber, chain.dependencies});
  report.facts.push_back({"data_work_ns", "Work of operators, whole trace", Kind::kDuration, chain.work_ns});
  report.facts.push_back({"data_chain_ns", "  longest chain of data dependencies", Kind::kDuration, chain.length_ns});
  if (study.graph.has_data) {
    const int64_t then_ns = study.mean_step_ns() - study.gain_ns({.data_order_only = true});
    report.facts.push_back(
        {"data_order_step_ns", "Step, if only data dependencies mattered", Kind::kDuration, then_ns});
  }
  report.notes.emplace_back(
      "the longest chain of data dependencies is a lower bound: more streams or threads cannot make these operators "
      "faster",
      "firelane whatif --data-order");
}

// Empty without an execution trace.
Table chain_table(const Model& model, const analyze::DataChain& chain, const Arguments& wanted) {
  Table table{.name = "data_chain",
              .title = "Longest chain of data dependencies, longest operators",
              .columns = {{"name", "Operator", Kind::kText, Align::kByKind, 60},
                          {"work_ns", "Work", Kind::kDuration},
                          {"done_ns", "Done after", Kind::kDuration},
                          {"start_ns", "Recorded from", Kind::kDuration}},
              .hide_if_empty = true};
  std::vector<const analyze::DataChain::Link*> order;
  for (const analyze::DataChain::Link& link : chain.links) order.push_back(&link);
  if (wanted.rows() != 0) {
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->work_ns > b->work_ns; });
    order.resize(shown_of(order.size(), wanted));
  }
  for (const analyze::DataChain::Link* link : order) {
    table.add({std::string(model.text(model.host_slices.name[link->op])), link->work_ns, link->done_ns,
               model.host_slices.start_ns[link->op]});
  }
  return table;
}

Result<Report> make_critical_path(const StudiedTrace& trace, const Arguments& wanted) {
  const Model& model = trace.model();
  const auto& study = trace.get<analyze::study>();
  const analyze::CriticalPath& path = study.path;
  Report report{.facts = {{"total_ns", "Critical path", Kind::kDuration, path.total_ns},
                          {"judged_steps", "Steps", Kind::kNumber, study.steps.judged},
                          {"limit", "", Kind::kText, std::string(analyze::name_of(study.bound.limit))},
                          {"verdict", "Limit", Kind::kText, advise::verdict_of(study).headline()}}};
  Table classes{
      .name = "classes",
      .title = "By class",
      .columns = {
          {"class", "Class"}, {"time_ns", "Time", Kind::kDuration}, {"share_percent", "Share", Kind::kPercent}}};
  for (size_t i = 0; i < analyze::kPathClassCount; ++i) {
    classes.add({std::string(analyze::name_of(static_cast<analyze::PathClass>(i))), path.by_class[i],
                 percent_of(path.by_class[i], path.total_ns)});
  }
  Table edges = edges_table(path);
  Table pieces{.name = "pieces",
               .title = "Longest pieces",
               .columns = {{"start_ns", "Start", Kind::kDuration},
                           {"duration_ns", "Duration", Kind::kDuration},
                           {"class", "Class"},
                           {"name", "What", Kind::kText, Align::kByKind, 60},
                           {"recorded_start_ns", "Recorded from", Kind::kDuration},
                           {"recorded_end_ns", "To", Kind::kDuration}},
               .hide_if_empty = true};
  std::vector<const analyze::PathPiece*> order;
  for (const analyze::PathPiece& piece : path.pieces) order.push_back(&piece);
  if (wanted.rows() != 0) {
    std::stable_sort(order.begin(), order.end(), [](const analyze::PathPiece* a, const analyze::PathPiece* b) {
      return a->end_ns - a->start_ns > b->end_ns - b->start_ns;
    });
    order.resize(shown_of(order.size(), wanted));
  }
  for (const analyze::PathPiece* piece : order) {
    const bool on_device = piece->path_class == analyze::PathClass::kCompute ||
                           piece->path_class == analyze::PathClass::kCommunication ||
                           piece->path_class == analyze::PathClass::kCopy;
    Cell name;
    if (piece->row != kNoRow && on_device) name = std::string(model.text(model.device_slices.name[piece->row]));
    if (piece->row != kNoRow && piece->path_class == analyze::PathClass::kHost) {
      name = "until " + std::string(model.text(model.host_slices.name[piece->row]));
    }
    pieces.add({piece->start_ns, piece->end_ns - piece->start_ns, std::string(analyze::name_of(piece->path_class)),
                name, piece->recorded.start_ns, piece->recorded.end_ns});
  }
  const auto& chain = trace.get<analyze::data_chain>();
  report.tables = {std::move(classes), std::move(edges), std::move(pieces), chain_table(model, chain, wanted)};
  if (chain.ops > 0) add_data_facts(chain, study, report);
  if (study.undone.factor > 0) {
    report.notes.push_back(
        "the recorder's overhead is subtracted: starts and durations are from the replay, not from the trace");
  }
  return report;
}

}  // namespace

ReportSpec critical_path_report() {
  return {.name = "critical-path",
          .title = "Critical path",
          .sentence = "Show the chain of dependencies that decides how long a step takes.",
          .examples = {"firelane critical-path trace.json.gz",
                       "firelane critical-path trace.json.gz --execution-trace et.json"},
          .parameters = {Parameter::rows()},
          .shown_rows = 20,
          .tables = {{"pieces"}, {"classes"}, {"edges"}, {"data_chain"}},
          .make = make_critical_path};
}

}  // namespace firelane::report

// `firelane critical-path`: the chain of dependencies that decides how long a step takes. With all of its pieces they
// are in order of time, with some of them the longest first.
#include <algorithm>

#include "advise/verdict.h"
#include "analyze/verdict/study.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

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
  report.tables = {std::move(classes), std::move(pieces)};
  if (study.undone.factor > 0) {
    report.notes.push_back(
        "the recorder's overhead is subtracted: starts and durations are those of the replay, not of the trace");
  }
  return report;
}

}  // namespace

ReportSpec critical_path_report() {
  return {.name = "critical-path",
          .title = "Critical path",
          .sentence = "The chain of dependencies that decides how long a step takes.",
          .examples = {"firelane critical-path trace.json.gz", "firelane critical-path trace.json.gz --json"},
          .parameters = {Parameter::rows()},
          .shown_rows = 20,
          .tables = {{"pieces"}, {"classes"}},
          .make = make_critical_path};
}

}  // namespace firelane::report

#include "analyze/trace/lanes.h"

#include "report/registry.h"

namespace firelane::report {

namespace {

Cell id_cell(const Model& model, const TraceId& id) {
  if (id.number != kNoNumber) return id.number;
  if (id.text == kNoString) return {};
  return std::string(model.text(id.text));
}

Cell name_cell(const Model& model, StringId name) {
  if (name == kNoString) return {};
  return std::string(model.text(name));
}

Result<Report> make_lanes(const StudiedTrace& trace, const Arguments& wanted) {
  const Model& model = trace.model();
  Table out{.name = "lanes",
            .columns = {{"lane", "Lane", Kind::kNumber},
                        {"kind", "Kind"},
                        {"process_id", "Process", Kind::kNumber},
                        {"thread_id", "Thread", Kind::kNumber},
                        {"process_name", "Program", Kind::kText, Align::kByKind, 24, true},
                        {"process_labels", "Label", Kind::kText, Align::kByKind, 16, true},
                        {"name", "Name", Kind::kText, Align::kByKind, 40},
                        {"slices", "Slices", Kind::kNumber},
                        {"first_ns", "First", Kind::kDuration},
                        {"last_ns", "Last", Kind::kDuration},
                        {"busy_ns", "Busy", Kind::kDuration},
                        {"depth", "Depth", Kind::kNumber}}};
  size_t hidden = 0;
  for (const analyze::LaneRow& row : trace.get<analyze::lane_table>()) {
    if (row.slices == 0 && !wanted.flag("all")) {
      ++hidden;
      continue;
    }
    const auto lane = static_cast<size_t>(row.lane);
    const Lanes& lanes = model.lanes;
    out.add({static_cast<int64_t>(lane), std::string(name_of(lanes.kind[lane])), id_cell(model, lanes.pid[lane]),
             id_cell(model, lanes.tid[lane]), name_cell(model, lanes.process_name[lane]),
             name_cell(model, lanes.process_labels[lane]), name_cell(model, lanes.name[lane]), row.slices,
             cell_unless(row.first_ns, kNoNumber), cell_unless(row.last_ns, kNoNumber), row.busy_ns, row.depth});
  }
  if (hidden > 0) out.notes.emplace_back("lanes without slices: " + std::to_string(hidden), "--all shows them");
  return Report{.tables = {std::move(out)}};
}

}  // namespace

ReportSpec lanes_report() {
  return {.name = "lanes",
          .title = "Lanes",
          .sentence = "List threads and GPU streams: what each contains and how long it was busy.",
          .examples = {"firelane lanes trace.json.gz", "firelane lanes trace.json.gz --all --json"},
          .parameters = {Parameter::flag("all", "show lanes without slices too")},
          .tables = {{"lanes"}},
          .make = make_lanes,
          .python_name = "lanes_summary",
          .needs_times = false};
}

}  // namespace firelane::report

#include "analyze/verdict/lines.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analyze/device/device_work.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/study.h"
#include "base/check.h"
#include "model/host_role.h"

namespace firelane::analyze {

namespace {

bool is_outermost_op(const HostSlices& host, Row row) {
  if (host.kind[row] != HostKind::kOp) return false;
  return host.parent[row] == kNoRow || host.kind[host.parent[row]] != HostKind::kOp;
}

class LineCollector {
 public:
  explicit LineCollector(const StudiedTrace& trace)
      : model_(trace.model()), study_(trace.get<study>()), lines_(trace.get<op_lines>()) {}

  LineTable run() {
    table_.is_known = true;
    table_.window_ns = study_.steps.window.end_ns - study_.steps.window.start_ns;
    find_rows();
    find_outermost();
    by_op_.resize(table_.rows.size());
    if (study_.host->chains.empty()) {
      table_.other_host_ns = table_.window_ns;
    } else {
      add_host(study_.host->chains[0]);
      add_calls(study_.host->chains[0]);
    }
    add_device();
    check();
    name_ops();
    sort();
    return std::move(table_);
  }

 private:
  // A line has one row, whoever called its function.
  void find_rows() {
    std::map<std::pair<std::string_view, std::string_view>, size_t> known;
    for (const ProgramLine& line : lines_.lines()) {
      const auto [at, is_new] = known.try_emplace({line.line, line.called_from}, table_.rows.size());
      if (is_new) table_.rows.push_back({.place = {.line = line.line, .called_from = line.called_from, .caller = ""}});
      row_of_line_.push_back(at->second);
    }
  }

  LineRow* row_of(Row slice) {
    const uint32_t line = slice == kNoRow ? OpLines::kNone : lines_.of(slice);
    return line == OpLines::kNone ? nullptr : &table_.rows[row_of_line_[line]];
  }

  void add_op(const LineRow& line, Row slice, int64_t ns) {
    const Row outermost = outermost_[slice];
    if (outermost == kNoRow) return;
    by_op_[static_cast<size_t>(&line - table_.rows.data())][model_.host_slices.name[outermost]] += ns;
  }

  // Of each slice, the op around it that no other one is around; parents come before their children.
  void find_outermost() {
    const HostSlices& host = model_.host_slices;
    outermost_.assign(host.size(), kNoRow);
    for (Row row = 0; row < host.size(); ++row) {
      const Row around = host.parent[row] == kNoRow ? kNoRow : outermost_[host.parent[row]];
      outermost_[row] = around == kNoRow && host.kind[row] == HostKind::kOp ? row : around;
    }
  }

  void name_ops() {
    constexpr size_t kMost = 3;
    for (size_t i = 0; i < by_op_.size(); ++i) {
      std::vector<LineOp>& most = table_.rows[i].most_in;
      for (const auto& [name, ns] : by_op_[i]) {
        std::string_view text = model_.text(name);
        if (text.starts_with(kNodeName)) text.remove_prefix(kNodeName.size());
        most.push_back({text, ns});
      }
      std::stable_sort(most.begin(), most.end(), [](const LineOp& a, const LineOp& b) { return a.ns > b.ns; });
      if (most.size() > kMost) most.resize(kMost);
    }
  }

  void add_host(const HostChain& chain) {
    const Interval& window = study_.steps.window;
    int64_t before_ns = 0;  // since the op before
    int64_t until_ns = window.start_ns;
    for (size_t i = chain.segment_after(window.start_ns); i < chain.segments.size(); ++i) {
      const HostSegment& segment = chain.segments[i];
      if (segment.start_ns >= window.end_ns) break;
      const int64_t end_ns = std::min(segment.end_ns, window.end_ns);
      const int64_t ns = end_ns - until_ns;
      until_ns = end_ns;
      if (segment.activity == Activity::kUnrecorded || segment.activity == Activity::kPython) {
        before_ns += ns;
        continue;
      }
      LineRow* row = row_of(segment.slice);
      if (row != nullptr && !study_.has_device_work) add_op(*row, segment.slice, ns);
      if (row == nullptr) {  // what has no line ends the stretch, too
        table_.other_host_ns += ns + before_ns;
      } else if (lines_.is_of_forward(segment.slice)) {
        row->backward_host_ns += ns + before_ns;
      } else {
        row->host_ns += ns;
        row->before_ns += before_ns;
      }
      before_ns = 0;
    }
    table_.other_host_ns += before_ns + (window.end_ns - until_ns);
  }

  void add_calls(const HostChain& chain) {
    const HostSlices& host = model_.host_slices;
    const Interval& window = study_.steps.window;
    for (const LaneId lane : chain.lanes) {
      const auto l = static_cast<size_t>(lane);
      for (Row row = model_.lanes.host_begin[l]; row < model_.lanes.host_end[l]; ++row) {
        if (host.start_ns[row] < window.start_ns || host.start_ns[row] >= window.end_ns) continue;
        if (!is_outermost_op(host, row)) continue;
        LineRow* line = row_of(row);
        if (line == nullptr) continue;
        line->calls += !lines_.is_of_forward(row);
        if (line->longest == kNoRow || host.duration_ns[row] > host.duration_ns[line->longest]) line->longest = row;
      }
    }
  }

  void add_device() {
    const DeviceSlices& device = model_.device_slices;
    const Interval& window = study_.steps.window;
    for (Row work = 0; work < device.size(); ++work) {
      if (!is_device_work(device.kind[work]) || !is_counted(model_, work)) continue;
      const int64_t launched = launch_start(model_, work);
      const int64_t time = launched == kNoNumber ? device.start_ns[work] : launched;
      if (time < window.start_ns || time >= window.end_ns) continue;
      const int64_t ns = counted_ns(model_, work);
      table_.work_ns += ns;
      const Row slice = lines_.slice_of(work);
      LineRow* row = row_of(slice);
      if (row == nullptr) {
        table_.other_device_ns += ns;
        continue;
      }
      (lines_.is_of_forward(slice) ? row->backward_device_ns : row->device_ns) += ns;
      add_op(*row, slice, ns);
      row->kernels += device.kind[work] == DeviceKind::kKernel;
    }
  }

  void check() const {
    int64_t host_ns = table_.other_host_ns;
    int64_t device_ns = table_.other_device_ns;
    for (const LineRow& row : table_.rows) {
      host_ns += row.all_host_ns();
      device_ns += row.all_device_ns();
    }
    FL_CHECK(host_ns == table_.window_ns, "line_table: host times must add up to the judged steps");
    FL_CHECK(device_ns == table_.work_ns,
             "line_table: device times must add up to the device work of the judged steps");
  }

  void sort() {
    std::erase_if(table_.rows, [](const LineRow& row) {
      return row.calls == 0 && row.all_host_ns() == 0 && row.all_device_ns() == 0;
    });
    const bool by_device = study_.has_device_work;
    const auto key = [&](const LineRow& row) {
      return std::pair(by_device ? row.all_device_ns() : 0, row.all_host_ns());
    };
    std::stable_sort(table_.rows.begin(), table_.rows.end(),
                     [&](const LineRow& a, const LineRow& b) { return key(a) > key(b); });
  }

  const Model& model_;
  const Study& study_;
  const OpLines& lines_;
  LineTable table_;
  std::vector<size_t> row_of_line_;
  std::vector<std::map<StringId, int64_t>> by_op_;  // by row of the table
  std::vector<Row> outermost_;
};

}  // namespace

LineTable line_table(const StudiedTrace& trace) {
  if (trace.get<op_lines>().empty()) return {};
  return LineCollector(trace).run();
}

}  // namespace firelane::analyze

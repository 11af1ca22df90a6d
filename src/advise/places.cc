#include "advise/places.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "advise/text.h"
#include "analyze/common/user_line.h"
#include "analyze/verdict/lines.h"
#include "analyze/verdict/study.h"

namespace firelane::advise {

namespace {

constexpr double kLeastShare = 0.1;  // of what is behind a finding
constexpr size_t kMostPlaces = 3;
constexpr double kLeastOfCaller = 0.2;
constexpr size_t kMostCallers = 3;
constexpr double kLeastOfStep = 0.05;
constexpr size_t kMostLines = 5;
constexpr double kBusy = 0.5;  // of a step: the device is what its lines are told by
constexpr double kNearlyAll = 0.7;

double share_of(int64_t ns, int64_t total_ns) {
  return total_ns <= 0 ? 0 : std::min(1.0, static_cast<double>(ns) / static_cast<double>(total_ns));
}

template <typename T, typename Value>
void sort_by(std::vector<T>& all, size_t most, const Value& value) {
  std::stable_sort(all.begin(), all.end(), [&](const T& a, const T& b) { return value(a) > value(b); });
  if (all.size() > most) all.resize(most);
}

// Time by line, and in it by the line that called its function.
class Weights {
 public:
  explicit Weights(const analyze::OpLines& lines) : lines_(lines) {}

  void add(uint32_t line, int64_t ns) {
    total_ns_ += ns;
    if (line == analyze::OpLines::kNone) return;
    const analyze::ProgramLine& place = lines_.lines()[line];
    Sum& sum = by_line_[{place.line, place.called_from}];
    sum.ns += ns;
    sum.by_caller[place.caller] += ns;
  }
  int64_t total_ns() const { return total_ns_; }

  std::vector<Place> places() const {
    std::vector<Place> out;
    for (const auto& [line, sum] : by_line_) {
      Place place{.line = std::string(line.first),
                  .called_from = std::string(line.second),
                  .ns = sum.ns,
                  .share = share_of(sum.ns, total_ns_)};
      if (place.share < kLeastShare) continue;
      place.callers = callers_of(sum);
      out.push_back(std::move(place));
    }
    sort_by(out, kMostPlaces, [](const Place& each) { return each.ns; });
    return out;
  }

 private:
  struct Sum {
    int64_t ns = 0;
    std::map<std::string_view, int64_t> by_caller;
  };

  // One that stands for all says nothing new.
  static std::vector<std::string> callers_of(const Sum& sum) {
    std::vector<std::pair<std::string_view, int64_t>> callers;
    for (const auto& [caller, ns] : sum.by_caller) {
      if (!caller.empty() && share_of(ns, sum.ns) >= kLeastOfCaller) callers.emplace_back(caller, ns);
    }
    if (callers.size() < 2) return {};
    sort_by(callers, kMostCallers, [](const auto& each) { return each.second; });
    std::vector<std::string> out;
    for (const auto& [caller, ns] : callers) out.emplace_back(caller);
    return out;
  }

  const analyze::OpLines& lines_;
  std::map<std::pair<std::string_view, std::string_view>, Sum> by_line_;
  int64_t total_ns_ = 0;
};

// A stretch of the timeline: what was called in it, by the leading threads.
void add_stretch(const analyze::Study& study, const analyze::OpLines& lines, const analyze::Interval& range,
                 Weights& weights) {
  if (study.host->chains.empty()) return;
  const analyze::HostChain& chain = study.host->chains[0];
  int64_t before_ns = 0;  // in Python, on the way to the next operator
  for (size_t i = chain.segment_after(range.start_ns); i < chain.segments.size(); ++i) {
    const analyze::HostSegment& segment = chain.segments[i];
    const int64_t start_ns = std::max(segment.start_ns, range.start_ns);
    const int64_t ns = std::max<int64_t>(0, std::min(segment.end_ns, range.end_ns) - start_ns);
    const bool is_between =
        segment.activity == analyze::Activity::kUnrecorded || segment.activity == analyze::Activity::kPython;
    if (is_between || segment.slice == kNoRow) {
      if (ns == 0 && before_ns == 0) break;
      before_ns += ns;
      continue;
    }
    if (ns > 0 || before_ns > 0) weights.add(lines.of(segment.slice), ns + before_ns);
    before_ns = 0;
    if (segment.end_ns >= range.end_ns) break;
  }
}

// "AminBackward0 51%, aten::amin 20%".
class MostIn {
 public:
  explicit MostIn(int64_t all_ns) : all_ns_(all_ns) {}

  void add(std::string_view name, int64_t ns) {
    constexpr double kLeast = 0.1;
    const double share = share_of(ns, all_ns_);
    if (share >= kLeast) text_ += (text_.empty() ? "" : ", ") + std::string(name) + " " + short_percent(share);
  }
  std::string take() { return std::move(text_); }

 private:
  int64_t all_ns_;
  std::string text_;
};

// The rows of the table that one line of the program leads to.
struct Group {
  const std::string* line = nullptr;
  std::vector<const analyze::LineRow*> rows;
  int64_t ns = 0;

  bool is_by_packages() const { return rows.size() > 1 || !rows[0]->place.called_from.empty(); }
};

}  // namespace

std::vector<Place> places_of(const StudiedTrace& trace, const Finding& finding) {
  const Model& model = trace.model();
  const auto& lines = trace.get<analyze::op_lines>();
  if (lines.empty()) return {};
  const auto& study = trace.get<analyze::study>();
  Weights weights(lines);
  for (const SliceRef& slice : finding.behind.empty() ? finding.slices : finding.behind) {
    const Row host_row = slice.on_device ? lines.slice_of(slice.row) : slice.row;
    const int64_t ns =
        slice.on_device ? model.device_slices.duration_ns[slice.row] : model.host_slices.duration_ns[slice.row];
    weights.add(host_row == kNoRow ? analyze::OpLines::kNone : lines.of(host_row), ns);
  }
  if (weights.total_ns() == 0) {
    for (const analyze::Interval& range : finding.ranges) add_stretch(study, lines, range, weights);
  }
  std::vector<Place> places = weights.places();
  for (Place& place : places) place.ns = study.per_step(place.ns);
  return places;
}

LargestLines largest_lines(const StudiedTrace& trace) {
  const auto& study = trace.get<analyze::study>();
  const auto& table = trace.get<analyze::line_table>();
  LargestLines out;
  if (!table.is_known) return out;
  const auto busy_ns = static_cast<double>(study.breakdown.total.busy_ns());
  out.on_device = study.has_device_work && busy_ns > kBusy * static_cast<double>(table.window_ns);
  const int64_t total_ns = out.on_device ? table.work_ns : table.window_ns;
  const auto ns_of = [&](const analyze::LineRow& row) {
    return out.on_device ? row.all_device_ns() : row.all_host_ns();
  };
  std::map<std::string_view, Group> groups;
  for (const analyze::LineRow& row : table.rows) {
    Group& group = groups[row.place.program_line()];
    group.line = &row.place.program_line();
    group.rows.push_back(&row);
    group.ns += ns_of(row);
  }
  const auto add = [&](Place place, MostIn most) {
    place.share = share_of(place.ns, total_ns);
    place.most_in = most.take();
    if (place.share >= kLeastOfStep) out.lines.push_back(std::move(place));
  };
  const auto add_row = [&](const analyze::LineRow& row) {
    MostIn most(study.has_device_work ? row.all_device_ns() : row.all_host_ns());
    for (const analyze::LineOp& op : row.most_in) most.add(op.name, op.ns);
    add({.line = row.place.line, .called_from = row.place.called_from, .ns = ns_of(row)}, std::move(most));
  };
  for (auto& [name, group] : groups) {
    // A line that leads to nearly all (trainer.train()) says nothing: those of the package do.
    const bool says_little = share_of(group.ns, total_ns) >= kNearlyAll;
    if (!group.is_by_packages() || says_little) {
      for (const analyze::LineRow* row : group.rows) add_row(*row);
      continue;
    }
    MostIn most(group.ns);
    sort_by(group.rows, 3, [&](const analyze::LineRow* row) { return ns_of(*row); });
    for (const analyze::LineRow* row : group.rows) {
      if (!row->place.called_from.empty()) most.add(analyze::without_folder(row->place.line), ns_of(*row));
    }
    add({.line = *group.line, .called_from = "", .ns = group.ns}, std::move(most));
  }
  sort_by(out.lines, kMostLines, [](const Place& each) { return each.ns; });
  for (Place& place : out.lines) place.ns = study.per_step(place.ns);
  return out;
}

std::string place_name(const Place& place) {
  std::string name(analyze::without_folder(place.line));
  if (!place.called_from.empty()) name += ", from " + std::string(analyze::without_folder(place.called_from));
  for (size_t i = 0; i < place.callers.size(); ++i) {
    name += (i == 0                         ? ", called at "
             : i + 1 < place.callers.size() ? ", "
                                            : " and ") +
            std::string(analyze::without_folder(place.callers[i]));
  }
  return name;
}

}  // namespace firelane::advise

#include "serve/one_file.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <vector>

#include "analyze/memory/memory_at.h"
#include "report/registry.h"
#include "serve/pages.h"
#include "serve/places.h"
#include "serve/tiles.h"
#include "serve/trace.h"

namespace firelane::serve {

namespace {

constexpr std::string_view kPlace = "<!--firelane-answers-->";
constexpr std::string_view kBefore = "<script type=\"application/json\" id=\"firelane-answers\">";
constexpr std::string_view kAfter = "</script>";
constexpr size_t kEvidenceSlices = 5;  // of a finding
constexpr size_t kEvidenceRanges = 3;
constexpr uint32_t kLevelsBelowWhole = 7;
constexpr uint32_t kLevelsBelowWindow = 4;
constexpr size_t kLanesPerRequest = 64;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

// JSON that nothing of HTML is left in. These three stand inside of texts only, so that the value stays the same.
std::string without_markup(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  return out;
}

// Answers in the order in which they were asked for, as long as they fit.
class AnswerBook {
 public:
  AnswerBook(Api& api, size_t max_bytes) : api_(api), left_(max_bytes) {}

  // `request` without /api/. One that fails or does not fit is left out.
  bool add(const std::string& request) { return add_as(request, request); }
  // The answer to `other` under the name of `request`: the same, shorter.
  bool add_as(const std::string& request, const std::string& other) {
    if (!asked_.insert(request).second) return true;
    const Result<Request> parsed = parse_target("/api/" + other);
    if (!parsed.ok()) return false;
    const Answer answer = api_.answer(parsed.value());
    if (!answer.ok()) return false;
    JsonWriter key;
    key.value(request);
    std::string entry = key.text() + ":{";
    if (answer.type == kBinaryType) {
      entry += "\"base64\":\"" + base64(answer.body) + "\"}";
    } else {
      entry += "\"json\":" + answer.body + "}";
    }
    entry = without_markup(entry);
    if (entry.size() + 1 > left_) return false;
    left_ -= entry.size() + 1;
    text_ += (text_.empty() ? "" : ",") + entry;
    return true;
  }

  std::string take() { return "{" + std::move(text_) + "}"; }

 private:
  Api& api_;
  size_t left_;
  std::string text_;
  std::set<std::string> asked_;
};

// The tables as the page's panes ask for them; it reads fewer rows here, and asks without saying how many.
void add_tables(AnswerBook& book, const analyze::Study& study) {
  const auto add = [&](const std::string& request) {
    book.add_as(request, request + (request.find('?') == std::string::npos ? "?" : "&") + "rows=200");
  };
  add("t/0/report/kernels?group_by_op=1");
  for (const report::ReportSpec& spec : report::all_reports()) {
    if (spec.name != "ops") add("t/0/report/" + std::string(spec.name));
  }
  // Ops come in the order of their first call: those that matter have to be among the first.
  const std::string order = study.has_device_work ? "self_device_time_total" : "self_cpu_time_total";
  book.add_as("t/0/report/ops", "t/0/report/ops?rows=500&sort_by=" + order);
  const std::string by_shape = "t/0/report/ops?group_by_input_shape=1";
  book.add_as(by_shape, by_shape + "&rows=300&sort_by=" + order);
}

// The two steps that the page compares at first: the fastest and the slowest of those judged.
void add_comparison(AnswerBook& book, const analyze::Study& study) {
  const std::vector<analyze::BreakdownRow>& steps = study.breakdown.steps;
  const auto [fastest, slowest] = std::minmax_element(
      steps.begin(), steps.end(),
      [](const analyze::BreakdownRow& a, const analyze::BreakdownRow& b) { return a.duration_ns < b.duration_ns; });
  if (fastest == slowest) return;
  for (const auto step : {fastest, slowest}) {
    const std::string request = "t/0/range?from_ns=" + std::to_string(step->start_ns) +
                                "&to_ns=" + std::to_string(step->start_ns + step->duration_ns);
    book.add_as(request, request + "&rows=300");
  }
}

// Flame graphs and memory, as the page's panes ask for them.
void add_panes(AnswerBook& book, const ServedTrace& trace) {
  const Model& model = trace.model();
  book.add("t/0/counters?bins=600");
  book.add("t/0/memory/curve?bins=600");
  book.add("t/0/memory/curve?bins=1000");
  for (const analyze::DeviceMemory& device : trace.memory().devices) {
    const std::string name = analyze::device_label(device);
    book.add("t/0/memory/curve?device=" + name + "&bins=1000");
    const std::string moment = "device=" + name + "&at_ns=" + std::to_string(device.peak.time_ns);
    book.add_as("t/0/memory/alive?" + moment, "t/0/memory/alive?" + moment + "&rows=200");
    book.add("t/0/memory/segments?" + moment);
  }
  size_t fullest = 0;
  const auto slices = [&](size_t lane) { return model.lanes.host_end[lane] - model.lanes.host_begin[lane]; };
  for (size_t lane = 1; lane < model.lanes.size(); ++lane) {
    if (model.lanes.kind[lane] == LaneKind::kThread && slices(lane) > slices(fullest)) fullest = lane;
  }
  for (const char* order : {"left-heavy", "inverted", "time"}) {
    for (const char* by : {"stack", "op"}) {
      const std::string request =
          "t/0/flame?order=" + std::string(order) + "&lane=" + std::to_string(fullest) + "&by=" + std::string(by);
      book.add_as(request + "&bins=2000", request + "&bins=500");
    }
  }
}

// A stretch of time, its level and its tiles.
struct TileWish {
  uint32_t level = 0;
  uint64_t first = 0;
  uint64_t count = 1;
};

class TileWishes {
 public:
  explicit TileWishes(int64_t end_ns) : end_ns_(static_cast<uint64_t>(std::max<int64_t>(1, end_ns))) {}

  // [from, to) at the level at which it is about a tile wide, and at some finer ones.
  void add(uint64_t from_ns, uint64_t to_ns, uint32_t levels_below) {
    to_ns = std::min(to_ns, end_ns_);
    if (from_ns >= to_ns) return;
    const uint64_t bin_ns = std::max<uint64_t>(1, (to_ns - from_ns) / kBinsPerTile);
    const auto top = std::min<uint32_t>(kMaxLevel, static_cast<uint32_t>(std::bit_width(bin_ns)));
    for (uint32_t below = 0; below <= std::min(levels_below, top); ++below) {
      const uint32_t level = top - below;
      const uint64_t first = (from_ns >> level) / kBinsPerTile;
      const uint64_t last = ((to_ns - 1) >> level) / kBinsPerTile;
      for (uint64_t at = first; at <= last; at += 16)
        wishes_.push_back({level, at, std::min<uint64_t>(16, last - at + 1)});
    }
  }
  // Coarse ones first.
  std::vector<TileWish> take() {
    std::stable_sort(wishes_.begin(), wishes_.end(),
                     [](const TileWish& a, const TileWish& b) { return a.level > b.level; });
    return std::move(wishes_);
  }

 private:
  uint64_t end_ns_;
  std::vector<TileWish> wishes_;
};

std::vector<std::string> lane_lists(const Model& model) {
  std::vector<std::string> lists;
  size_t in_last = kLanesPerRequest;
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    const bool is_empty = model.lanes.host_begin[lane] == model.lanes.host_end[lane] &&
                          model.lanes.device_begin[lane] == model.lanes.device_end[lane];
    if (is_empty) continue;
    if (in_last == kLanesPerRequest) {
      lists.emplace_back();
      in_last = 0;
    }
    lists.back() += (in_last == 0 ? "" : ",") + std::to_string(lane);
    ++in_last;
  }
  return lists;
}

void add_tiles(AnswerBook& book, const ServedTrace& trace) {
  const Model& model = trace.model();
  TileWishes wishes(trace.timeline().end_ns());
  wishes.add(0, UINT64_MAX, kLevelsBelowWhole);
  for (const advise::Finding& finding : trace.diagnosis().findings) {
    const auto add = [&](int64_t start_ns, int64_t end_ns) {
      const int64_t around = std::max<int64_t>(1000, end_ns - start_ns);  // as much on both sides: what was it beside
      wishes.add(static_cast<uint64_t>(std::max<int64_t>(0, start_ns - around)),
                 static_cast<uint64_t>(std::max<int64_t>(0, end_ns + around)), kLevelsBelowWindow);
    };
    for (size_t i = 0; i < std::min(finding.ranges.size(), kEvidenceRanges); ++i) {
      add(finding.ranges[i].start_ns, finding.ranges[i].end_ns);
    }
    for (size_t i = 0; i < std::min(finding.slices.size(), kEvidenceSlices); ++i) {
      const int64_t start = start_of(model, finding.slices[i]);
      add(start, start + duration_of(model, finding.slices[i]));
    }
  }
  const std::vector<std::string> lists = lane_lists(model);
  for (const TileWish& wish : wishes.take()) {
    for (const std::string& lanes : lists) {
      const bool fits =
          book.add("t/0/tiles?level=" + std::to_string(wish.level) + "&first=" + std::to_string(wish.first) +
                   "&count=" + std::to_string(wish.count) + "&lanes=" + lanes);
      if (!fits) return;  // finer ones would be larger still
    }
  }
}

}  // namespace

Result<std::string_view> one_file_page() {
  const Page* page = find_page("report.html");
  if (page == nullptr) {
    return Error{
        "report: this firelane was built without its viewer (make viewer, then make build); Markdown works: -o "
        "report.md"};
  }
  return page->bytes;
}

Result<std::string> one_file(Api& api, std::string_view page, size_t max_bytes) {
  const std::shared_ptr<const StudiedTrace> studied = api.traces().trace(0);
  if (studied == nullptr) return Error{"report: the trace is not loaded"};
  const ServedTrace trace(*studied);
  const size_t place = page.find(kPlace);
  if (place == std::string_view::npos)
    return Error{"report: the viewer's page has no place for answers; build it again: make viewer"};
  const size_t around = page.size() - kPlace.size() + kBefore.size() + kAfter.size() + 2;
  if (around >= max_bytes) return Error{"report: the viewer's page alone is larger than a report may be"};

  AnswerBook book(api, max_bytes - around);
  for (const char* request : {"traces", "t/0/overview", "t/0/lanes", "t/0/diagnose"}) book.add(request);
  for (const advise::Finding& finding : trace.diagnosis().findings) book.add("t/0/explain/" + finding.id);
  add_tables(book, trace.study());
  add_comparison(book, trace.study());
  for (const advise::Finding& finding : trace.diagnosis().findings) {
    for (size_t i = 0; i < std::min(finding.slices.size(), kEvidenceSlices); ++i) {
      book.add("t/0/slice/" + ref_text(finding.slices[i]));
    }
  }
  add_panes(book, trace);
  add_tiles(book, trace);
  return std::string(page.substr(0, place)) + std::string(kBefore) + book.take() + std::string(kAfter) +
         std::string(page.substr(place + kPlace.size()));
}

}  // namespace firelane::serve

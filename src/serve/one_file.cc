#include "serve/one_file.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "advise/light_note.h"
#include "analyze/memory/memory_at.h"
#include "ranks/seen/window.h"
#include "report/registry.h"
#include "serve/handlers.h"
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
    if (entry.size() + 1 + kept_ > left_) return false;
    left_ -= entry.size() + 1;
    text_ += (text_.empty() ? "" : ",") + entry;
    return true;
  }

  // From now on, until it is called again: a part of what is left, the rest is kept for others.
  void share(size_t parts) { kept_ = left_ - left_ / std::max<size_t>(1, parts); }

  std::string take() { return "{" + std::move(text_) + "}"; }

 private:
  Api& api_;
  size_t left_;
  size_t kept_ = 0;
  std::string text_;
  std::set<std::string> asked_;
};

// A trace of the report, and what its requests begin with: "t/0/".
struct PartTrace {
  ServedTrace served;
  std::string at;
};

// Its light steps, where times are theirs.
std::optional<PartTrace> light_of(const PartTrace& trace) {
  const StudiedTrace& studied = trace.served.studied();
  const StudiedTrace& timed = advise::timed_trace(studied);
  if (&timed == &studied) return std::nullopt;
  return PartTrace{ServedTrace(timed), trace.at.substr(0, trace.at.size() - 1) + ".light/"};
}

// The tables as the page's panes ask for them; it reads fewer rows here, and asks without saying how many.
void add_tables(AnswerBook& book, const PartTrace& trace) {
  const analyze::Study& study = trace.served.study();
  const std::string reports = trace.at + "report/";
  const auto add = [&](const std::string& request) {
    book.add_as(request, request + (request.find('?') == std::string::npos ? "?" : "&") + "rows=200");
  };
  add(reports + "kernels?group_by_op=1");
  for (const report::ReportSpec& spec : report::all_reports()) {
    if (spec.name != "ops") add(reports + std::string(spec.name));
  }
  // Ops come in the order of their first call: those that matter have to be among the first.
  const std::string order = study.has_device_work ? "self_device_time_total" : "self_cpu_time_total";
  book.add_as(reports + "ops", reports + "ops?rows=500&sort_by=" + order);
  const std::string by_shape = reports + "ops?group_by_input_shape=1";
  book.add_as(by_shape, by_shape + "&rows=300&sort_by=" + order);
}

// The two steps that the page compares at first: the fastest and the slowest of those judged.
void add_two_steps(AnswerBook& book, const PartTrace& trace) {
  const std::vector<analyze::BreakdownRow>& steps = trace.served.study().breakdown.steps;
  const auto [fastest, slowest] = std::minmax_element(
      steps.begin(), steps.end(),
      [](const analyze::BreakdownRow& a, const analyze::BreakdownRow& b) { return a.duration_ns < b.duration_ns; });
  if (fastest == slowest) return;
  for (const auto step : {fastest, slowest}) {
    const std::string request = trace.at + "range?from_ns=" + std::to_string(step->start_ns) +
                                "&to_ns=" + std::to_string(step->start_ns + step->duration_ns);
    book.add_as(request, request + "&rows=300");
  }
}

struct FlameWish {
  std::string order;
  std::string by;
  size_t lane = 0;
};

void add_flame(AnswerBook& book, const PartTrace& trace, const FlameWish& wish) {
  const std::string request =
      trace.at + "flame?order=" + wish.order + "&lane=" + std::to_string(wish.lane) + "&by=" + wish.by;
  book.add_as(request + "&bins=2000", request + "&bins=500");
}

// Flame graphs and memory, as the page's panes ask for them.
void add_panes(AnswerBook& book, const PartTrace& trace) {
  const Model& model = trace.served.model();
  const std::string memory = trace.at + "memory/";
  book.add(trace.at + "counters?bins=600");
  book.add(memory + "curve?bins=600");
  book.add(memory + "curve?bins=1000");
  for (const analyze::DeviceMemory& device : trace.served.memory().devices) {
    const std::string name = analyze::device_label(device);
    book.add(memory + "curve?device=" + name + "&bins=1000");
    const std::string moment = "device=" + name + "&at_ns=" + std::to_string(device.peak.time_ns);
    book.add_as(memory + "alive?" + moment, memory + "alive?" + moment + "&rows=200");
    book.add(memory + "segments?" + moment);
  }
  size_t fullest = 0;
  const auto slices = [&](size_t lane) { return model.lanes.host_end[lane] - model.lanes.host_begin[lane]; };
  for (size_t lane = 1; lane < model.lanes.size(); ++lane) {
    if (model.lanes.kind[lane] == LaneKind::kThread && slices(lane) > slices(fullest)) fullest = lane;
  }
  for (const char* order : {"left-heavy", "inverted", "time"}) {
    for (const char* by : {"stack", "op"}) add_flame(book, trace, {order, by, fullest});
  }
  const std::vector<SampledThread> sampled = sampled_threads(model);
  if (sampled.empty()) return;
  const bool is_sampled = std::any_of(sampled.begin(), sampled.end(), [&](const SampledThread& thread) {
    return static_cast<size_t>(thread.lane) == fullest;
  });
  const size_t thread = is_sampled ? fullest : static_cast<size_t>(sampled[0].lane);
  for (const char* order : {"left-heavy", "inverted"}) add_flame(book, trace, {order, "sample", thread});
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

// Each step below the other side's: those of median length, and those of the same number.
void wish_for_steps(TileWishes& wishes, const ServedTrace& trace, const ServedTrace& other) {
  const auto usual = [](const Steps& steps) {
    std::vector<Row> order(steps.size());
    std::iota(order.begin(), order.end(), Row{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](Row a, Row b) { return steps.duration_ns[a] < steps.duration_ns[b]; });
    return order.empty() ? kNoRow : order[(order.size() - 1) / 2];
  };
  const Steps& own = trace.step_marks();
  const Row usual_own = usual(own);
  const Row of_other = usual(other.step_marks());
  const int64_t same = of_other == kNoRow ? -1 : other.step_marks().number[of_other];
  for (Row row = 0; row < own.size(); ++row) {
    if (row != usual_own && own.number[row] != same) continue;
    const auto start = static_cast<uint64_t>(std::max<int64_t>(0, own.start_ns[row]));
    wishes.add(start, start + static_cast<uint64_t>(own.duration_ns[row]), kLevelsBelowWindow);
  }
}

void add_tiles(AnswerBook& book, const PartTrace& part, const ServedTrace* other) {
  const ServedTrace& trace = part.served;
  const Model& model = trace.model();
  TileWishes wishes(trace.timeline().end_ns());
  wishes.add(0, UINT64_MAX, kLevelsBelowWhole);
  if (other != nullptr) wish_for_steps(wishes, trace, *other);
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
          book.add(part.at + "tiles?level=" + std::to_string(wish.level) + "&first=" + std::to_string(wish.first) +
                   "&count=" + std::to_string(wish.count) + "&lanes=" + lanes);
      if (!fits) return;  // finer ones would be larger still
    }
  }
}

// For a comparison: the first run of each side, whose timelines stand below each other.
std::vector<size_t> shown_traces(const Comparison& comparison) {
  if (comparison.before.empty()) return {0};
  std::vector<size_t> out = {comparison.before[0]};
  if (comparison.after[0] != out[0]) out.push_back(comparison.after[0]);
  return out;
}

void add_comparison(AnswerBook& book, const std::vector<size_t>& before, const std::vector<size_t>& after) {
  const auto ids_text = [](const std::vector<size_t>& ids) {
    std::string out;
    for (const size_t id : ids) out += (out.empty() ? "" : ",") + std::to_string(id);
    return out;
  };
  const std::string sides = "before=" + ids_text(before) + "&after=" + ids_text(after);
  book.add_as("compare?" + sides, "compare?" + sides + "&rows=300");
  for (const char* by : {"device", "op", "stack"}) {
    const std::string request = "compare/flame?" + sides + "&by=" + by;
    book.add_as(request + "&bins=1000", request + "&bins=500");
  }
}

// For a job: all of it as the page's pane asks for it, and the arrivals of the collectives that cost the most.
void add_job(AnswerBook& book, const ServedJob& served) {
  constexpr size_t kListed = 100;
  for (const char* request : {"ranks/report", "ranks/layout", "ranks/timeline"}) book.add(request);
  for (const char* value : {"step", "wait", "late", "compute", "memory"}) {
    book.add("ranks/heat?value=" + std::string(value) + "&rows=256&columns=256");
  }
  book.add("ranks/collectives?order=wait&rows=" + std::to_string(kListed));
  const ranks::CollectiveList costly =
      ranks::collectives_in(*served.job, ranks::whole_axis(*served.job), -1, ranks::CollectiveOrder::kWait, kListed);
  for (const ranks::CollectiveSeen& each : costly.shown) {
    if (!book.add("ranks/arrivals?id=" + std::to_string(each.instance))) return;
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
  const size_t place = page.find(kPlace);
  if (place == std::string_view::npos)
    return Error{"report: the viewer's page has no place for answers; rebuild it: make viewer"};
  const size_t around = page.size() - kPlace.size() + kBefore.size() + kAfter.size() + 2;
  if (around >= max_bytes) return Error{"report: the viewer's page alone exceeds the maximum size of a report"};

  std::vector<std::shared_ptr<const StudiedTrace>> held;
  std::vector<PartTrace> traces;
  for (const size_t id : api.job() != nullptr ? std::vector<size_t>() : shown_traces(api.comparison())) {
    held.push_back(api.traces().trace(id));
    if (held.back() == nullptr) return Error{"report: " + api.traces().path(id) + ": the trace is not loaded"};
    traces.push_back({ServedTrace(*held.back()), "t/" + std::to_string(id) + "/"});
  }
  AnswerBook book(api, max_bytes - around);
  book.add("traces");
  if (api.job() != nullptr) add_job(book, *api.job());
  const Comparison& comparison = api.comparison();
  if (traces.size() > 1) {
    add_comparison(book, comparison.before, comparison.after);
    for (const char* by : {"file", "model", "batch"}) book.add("runs?by=" + std::string(by));
  }
  for (const PartTrace& trace : traces) {
    for (const char* request : {"light", "overview", "lanes", "diagnose"}) book.add(trace.at + request);
    if (const auto light = light_of(trace)) book.add(light->at + "lanes");
    for (const advise::Finding& finding : trace.served.diagnosis().findings)
      book.add(trace.at + "explain/" + finding.id);
  }
  if (traces.size() > 1) add_comparison(book, comparison.after, comparison.before);  // the page's button swaps them
  for (size_t i = 0; i < traces.size(); ++i) {
    const PartTrace& trace = traces[i];
    book.share(traces.size() - i);
    add_tables(book, trace);
    const std::optional<PartTrace> light = light_of(trace);
    add_two_steps(book, light ? *light : trace);
    for (const advise::Finding& finding : trace.served.diagnosis().findings) {
      for (size_t k = 0; k < std::min(finding.slices.size(), kEvidenceSlices); ++k) {
        book.add(trace.at + "slice/" + ref_text(finding.slices[k]));
      }
    }
    add_panes(book, trace);
    if (light) add_tiles(book, *light, nullptr);
    add_tiles(book, trace, traces.size() > 1 ? &traces[traces.size() - 1 - i].served : nullptr);
  }
  return std::string(page.substr(0, place)) + std::string(kBefore) + book.take() + std::string(kAfter) +
         std::string(page.substr(place + kPlace.size()));
}

}  // namespace firelane::serve

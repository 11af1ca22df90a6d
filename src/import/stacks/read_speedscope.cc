#include <simdjson.h>

#include <cmath>
#include <string>
#include <vector>

#include "import/cut_json.h"
#include "import/stacks/read_stacks.h"
#include "import/stacks/stack_rows.h"
#include "import/whole.h"

namespace firelane::importer {

namespace {

using Element = simdjson::dom::element;

// Nanoseconds of one unit; bytes and samples count as if they were.
double unit_ns(std::string_view unit) {
  if (unit == "seconds") return 1e9;
  if (unit == "milliseconds") return 1e6;
  if (unit == "microseconds") return 1e3;
  return 1;
}

double real_in(const Element& value) {
  double number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  int64_t whole = 0;
  return value.get(whole) == simdjson::SUCCESS ? static_cast<double>(whole) : std::nan("");
}

class SpeedscopeReader {
 public:
  Result<RawTrace> run(std::string bytes, const ReadRequest& request) {
    raw_.info.content_bytes = bytes.size();
    bytes.reserve(bytes.size() + simdjson::SIMDJSON_PADDING);
    simdjson::dom::parser parser;
    Element root;
    auto error = parser.parse(bytes.data(), bytes.size(), false).get(root);
    if (error && close_cut_json(bytes)) {
      ++raw_.losses[Stat::kTruncated];
      bytes.reserve(bytes.size() + simdjson::SIMDJSON_PADDING);
      error = parser.parse(bytes.data(), bytes.size(), false).get(root);
    }
    if (error) {
      return Error{request.name + ": speedscope's JSON, cut off or damaged: " + simdjson::error_message(error)};
    }
    simdjson::dom::array frames;
    if (root["shared"]["frames"].get(frames) == simdjson::SUCCESS) {
      for (const Element frame : frames) frames_.push_back(rows_.frame(name_of_frame(frame)));
    }
    simdjson::dom::array profiles;
    if (root["profiles"].get(profiles) == simdjson::SUCCESS) {
      for (const Element profile : profiles) read_profile(profile);
    }
    if (rows_.empty() && raw_.losses[Stat::kTruncated] > 0)
      return Error{request.name + ": a speedscope file that is cut off before its frames; copy it again"};
    if (rows_.empty()) return Error{request.name + ": a speedscope file without frames"};
    raw_.info.format = "speedscope";
    raw_.info.origin = Origin::kStacks;
    return std::move(raw_);
  }

 private:
  // "train.py(12): step", as Python functions are called elsewhere.
  static std::string name_of_frame(const Element& frame) {
    std::string_view name, file;
    if (frame["name"].get(name) != simdjson::SUCCESS) return "?";
    if (frame["file"].get(file) != simdjson::SUCCESS || file.empty()) return std::string(name);
    int64_t line = 0;
    const bool has_line = frame["line"].get(line) == simdjson::SUCCESS;
    return std::string(file) + (has_line ? "(" + std::to_string(line) + ")" : "") + ": " + std::string(name);
  }

  void read_profile(const Element& profile) {
    std::string_view type, name = "profile", unit;
    (void)profile["type"].get(type);
    (void)profile["name"].get(name);
    (void)profile["unit"].get(unit);
    scale_ = unit_ns(unit);
    Element start;
    origin_ = profile["startValue"].get(start) == simdjson::SUCCESS ? real_in(start) : 0;
    if (!std::isfinite(origin_)) origin_ = 0;
    rows_.begin_lane(name);
    if (type == "evented") {
      read_events(profile);
    } else {
      read_samples(profile);
    }
  }

  // False, and counted, for what is no time.
  bool time_of(double value, int64_t& ns) {
    const double scaled = (value - origin_) * scale_;
    if (!std::isfinite(scaled) || std::fabs(scaled) > 1e17) {
      ++rows_.losses()[Stat::kTimeOutOfRange];
      return false;
    }
    ns = std::llround(scaled);
    return true;
  }

  bool frame_at(const Element& value, StringId& frame) {
    int64_t index = -1;
    if (value.get(index) != simdjson::SUCCESS || index < 0 || index >= static_cast<int64_t>(frames_.size())) {
      ++rows_.losses()[Stat::kNameMissing];
      return false;
    }
    frame = frames_[static_cast<size_t>(index)];
    return true;
  }

  void read_events(const Element& profile) {
    simdjson::dom::array events;
    int64_t last_ns = 0;
    if (profile["events"].get(events) == simdjson::SUCCESS) {
      for (const Element event : events) {
        Element at, index;
        std::string_view type;
        int64_t ns = 0;
        StringId frame{};
        const bool is_whole = event["at"].get(at) == simdjson::SUCCESS &&
                              event["frame"].get(index) == simdjson::SUCCESS &&
                              event["type"].get(type) == simdjson::SUCCESS;
        if (!is_whole) {
          ++rows_.losses()[Stat::kEventMalformed];
          continue;
        }
        if (!time_of(real_in(at), ns) || !frame_at(index, frame)) continue;
        last_ns = std::max(last_ns, ns);
        if (type == "O") {
          rows_.open(frame, ns);
        } else {
          rows_.close(frame, ns);
        }
      }
    }
    rows_.end_lane(last_ns, true);
  }

  void read_samples(const Element& profile) {
    simdjson::dom::array samples, weights;
    const bool has_weights = profile["weights"].get(weights) == simdjson::SUCCESS;
    if (profile["samples"].get(samples) != simdjson::SUCCESS) return;
    std::vector<double> lengths;
    if (has_weights) {
      for (const Element weight : weights) lengths.push_back(real_in(weight));
    }
    std::vector<StringId> stack;
    size_t number = 0;
    for (const Element sample : samples) {
      simdjson::dom::array indices;
      const double length = number < lengths.size() ? lengths[number] : 1;
      ++number;
      if (sample.get(indices) != simdjson::SUCCESS) continue;
      stack.clear();
      bool is_whole = true;
      for (const Element index : indices) {
        StringId frame{};
        is_whole = is_whole && frame_at(index, frame);
        stack.push_back(frame);
      }
      const double ns = length * scale_;
      if (!is_whole || !std::isfinite(ns) || ns < 0 || ns > 1e15 || rows_.now_ns() > kMaxDurationNs / 4) {
        ++rows_.losses()[Stat::kDurationOutOfRange];
        continue;
      }
      rows_.sample(stack, std::llround(ns));
    }
    rows_.end_lane(rows_.now_ns(), false);
  }

  RawTrace raw_;
  StackRows rows_{raw_};
  std::vector<StringId> frames_;
  double scale_ = 1;
  double origin_ = 0;
};

}  // namespace

bool is_speedscope(std::string_view begin) {
  const size_t at = begin.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && begin[at] == '{' &&
         begin.find("speedscope.app/file-format-schema") != std::string_view::npos;
}

Reader speedscope_reader() {
  return {"speedscope", is_speedscope,
          [](std::unique_ptr<ByteSource> content, const ReadRequest& request) -> Result<RawTrace> {
            FL_TRY(std::string bytes, read_whole_content(*content, request));
            FL_TRY(RawTrace raw, SpeedscopeReader().run(std::move(bytes), request));
            raw.losses.add(content->losses());
            return raw;
          }};
}

}  // namespace firelane::importer

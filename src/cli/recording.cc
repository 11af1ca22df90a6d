#include "cli/recording.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMetrics = "metrics";
constexpr std::string_view kAlone = "true";  // the flag without a list
constexpr double kShortestIntervalNs = 20e3;
constexpr double kLongestIntervalNs = 1e9;

void add_option(Flags& flags, const format::RecordOption& option, bool& is_given) {
  std::string name(option.name);
  std::ranges::replace(name, '_', '-');
  const std::string help(option.help);
  if (option.is_on_by_default) {
    flags.add("--no-" + name, is_given, "leave out " + help);
  } else {
    flags.add("--" + name, is_given, help);
  }
}

// "100us", "1ms": nanoseconds.
std::optional<double> interval_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string_view unit = end;
  const double scale = unit == "ms" ? 1e6 : unit == "us" ? 1e3 : 0;
  if (end == text.c_str() || !(number * scale >= kShortestIntervalNs && number * scale <= kLongestIntervalNs))
    return std::nullopt;
  return number * scale;
}

bool is_place(const std::string& text) {
  return text.ends_with(".sock") || (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos);
}

// CUPTI's names are unit__counter.rollup.
std::string wrong_in_metrics(const std::string& list) {
  if (is_place(list)) return "the GPU's hardware metrics; a place for Prometheus is --prometheus " + list;
  for (size_t begin = 0; begin < list.size() && list != kAlone;) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    if (name.find("__") == std::string::npos || name.find('.') == std::string::npos)
      return "'" + name + "' is not one of CUPTI's metrics, such as sm__cycles_active.avg";
    begin = end + 1;
  }
  return {};
}

void add_metrics(Flags& flags, const format::RecordOption& option, RecordingArgs& args) {
  flags
      .add_with_optional_value("--metrics", args.metrics,
                               std::string(option.help) + "; --metrics=LIST: CUPTI's, by commas")
      .check(wrong_in_metrics);
  flags.add("--metric-interval", args.metric_interval, "with --metrics: the time between samples")
      .value_name("TIME")
      .show_default()
      .check([](const std::string& text) -> std::string {
        return interval_of(text) ? "" : "'" + text + "' is not a time between 20us and 1000ms";
      });
}

}  // namespace

void add_recording_flags(Flags& flags, RecordingArgs& args, const std::string& steps_help,
                         const std::string& output_help) {
  flags.add("-o,--output", args.output, output_help).show_default();
  flags.add("--force", args.force, "replace an existing file when the new recording is complete");
  const auto count = [&](const std::string& name, int64_t& value, const std::string& help) {
    flags.add(name, value, help).whole_number().show_default();
  };
  count("--steps", args.steps, steps_help);
  flags
      .add("--light", args.light,
           "light steps to record before these: the GPU's work and launches without ops, nearly at full speed; times "
           "and verdicts are taken from them (default: 3 with a GPU, none without)")
      .whole_number();
  count("--wait", args.wait, "steps to skip first; they are timed, but not recorded");
  count("--warmup", args.warmup, "steps to warm up the recorder before recording");
  count("--after", args.after, "steps to time afterwards, without recording");
  flags.add("--sample", args.sample, "sample the Python stacks of all threads meanwhile, into the same trace");
  flags.add("--sample-rate", args.sample_rate, "with --sample: looks a second").between(1.0, 10'000.0).show_default();
}

void add_recorder_options(Flags& flags, RecordingArgs& args) {
  for (size_t i = 0; i < format::kRecordOptions.size(); ++i) {
    const format::RecordOption& option = format::kRecordOptions[i];
    if (option.name == kMetrics) {
      add_metrics(flags, option, args);
    } else {
      add_option(flags, option, args.flag_given[i]);
    }
  }
}

Result<RecordingFile> find_recording_file(const RecordingArgs& args) {
  std::error_code error;
  const fs::path path = fs::absolute(args.output, error);
  if (error) return Error{args.output + ": " + error.message()};
  if (!fs::is_directory(path.parent_path(), error))
    return Error{args.output + ": no such folder; create it, or choose another with -o"};
  if (fs::exists(path, error)) {
    if (!args.force) return Error{args.output + " exists; add --force to replace it, or -o another name"};
    if (!fs::is_regular_file(path, error)) return Error{args.output + " is not a regular file; choose another with -o"};
  }
  struct stat old{};
  return RecordingFile{path.string(), stat(path.c_str(), &old) == 0 ? old.st_ino : 0};
}

void add_recording(JsonWriter& json, const RecordingArgs& args, const RecordingFile& file) {
  json.field("output", file.path).field("old_inode", static_cast<int64_t>(file.old_inode));
  json.field("steps", args.steps)
      .field("light", args.light)
      .field("sample_rate", args.sample ? args.sample_rate : 0.0)
      .field("wait", args.wait)
      .field("warmup", args.warmup)
      .field("after", args.after);
  json.key("options").begin_object();
  for (size_t i = 0; i < format::kRecordOptions.size(); ++i) {
    const format::RecordOption& option = format::kRecordOptions[i];
    json.field(option.name,
               option.name == kMetrics ? !args.metrics.empty() : option.is_on_by_default != args.flag_given[i]);
  }
  if (!args.metrics.empty()) {
    json.field("metric_names", args.metrics == kAlone ? "" : args.metrics);
    json.field("metric_interval_ms", interval_of(args.metric_interval).value_or(1e6) / 1e6);
  }
  json.end_object();
}

}  // namespace firelane::cli

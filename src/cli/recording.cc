#include "cli/recording.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "base/words.h"
#include "live/sampler.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMetrics = "metrics";
constexpr std::string_view kAlone = "true";  // the flag without a list

void add_option(Flags& flags, const format::RecordOption& option, RecordingArgs::Option& given) {
  std::string name(option.name);
  std::ranges::replace(name, '_', '-');
  const std::string help(option.help);
  const bool for_verdicts = format::is_for_verdicts(option.name);
  if (!option.is_on_by_default) flags.add("--" + name, given.wanted, help + (for_verdicts ? " (on)" : ""));
  if (option.is_on_by_default || for_verdicts)
    flags.add("--no-" + name, given.left_out, "leave out " + (for_verdicts ? "these, which many findings need" : help));
}

bool is_on(const format::RecordOption& option, const RecordingArgs& args, const RecordingArgs::Option& given) {
  if (option.name == kMetrics) return !args.metrics.empty();
  const bool unasked = option.is_on_by_default || (!args.always && format::is_for_verdicts(option.name));
  return (unasked || given.wanted) && !given.left_out;
}

// "100us", "1ms": milliseconds.
std::optional<double> interval_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string_view unit = end;
  const double ms = unit == "ms" ? number : unit == "us" ? number / 1e3 : 0;
  if (end == text.c_str() || !format::wrong_metric_interval(ms).empty()) return std::nullopt;
  return ms;
}

// Where Prometheus could be served, as --prometheus takes it: the port of 9400, :9400 and localhost:9400, or a Unix
// socket's path; "": nowhere.
std::string serving_place(const std::string& text) {
  const std::string port = text.substr(text.rfind(':') + 1);
  if (is_digits(port)) return port;
  return text.ends_with(".sock") || contains(text, "/") ? text : "";
}

// CUPTI's names are unit__counter.rollup.
std::string wrong_in_metrics(const std::string& list) {
  if (const std::string place = serving_place(list); !place.empty())
    return "the GPU's hardware metrics; a place for Prometheus is --prometheus " + place;
  const std::vector<std::string_view> names = names_in(list);
  if (names.empty()) return "a list without names; --metrics alone records the default set";
  for (const std::string_view name : names) {
    if (name != kAlone && (!contains(name, "__") || !contains(name, ".")))
      return "'" + std::string(name) + "' is not one of CUPTI's metrics, such as sm__cycles_active.avg";
  }
  return {};
}

// For all flags, whose values are lines; without those that had no list.
std::string metric_names(std::string given) {
  std::ranges::replace(given, '\n', ',');
  std::string out;
  for (const std::string_view name : names_in(given)) {
    if (name != kAlone) out += (out.empty() ? "" : ",") + std::string(name);
  }
  return out;
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

std::string wrong_in_sample(const std::string& value) {
  if (value == kAlone) return {};
  return "'" + value + "': takes no value" + (is_number(value) ? "; set the rate with --sample-rate " + value : "");
}

std::string wrong_in_rate(const std::string& text) {
  return is_number(text) ? live::wrong_rate(std::strtod(text.c_str(), nullptr)) : "'" + text + "' is not a number";
}

void add_metrics(Flags& flags, const format::RecordOption& option, RecordingArgs& args) {
  flags
      .add_with_optional_value("--metrics", args.metrics,
                               std::string(option.help) + "; --metrics=LIST: CUPTI's names, separated by commas")
      .joined()
      .check(wrong_in_metrics);
  flags.add("--metric-interval", args.metric_interval, "with --metrics: the time between samples")
      .value_name("TIME")
      .show_default()
      .needs("--metrics")
      .check([](const std::string& text) -> std::string {
        return interval_of(text) ? "" : "'" + text + "' is not a time between 20us and 1000ms";
      });
}

// A rate, a place for Prometheus (localhost:9400), or CUPTI's names; not the program: my__prog.py, .venv/bin/python.
bool looks_like_value(const std::string& flag, const std::string& word) {
  if (is_number(word)) return true;
  if (flag == "--sample") return false;
  if (word.ends_with(".sock") || word.starts_with(':')) return true;
  if (contains(word, "/") || word.ends_with(".py")) return false;
  const bool is_address = contains(word, ":") && is_digits(word.substr(word.rfind(':') + 1));
  return is_address || (contains(word, "__") && contains(word, "."));
}

// Whether the word behind a flag without a value is meant as one. Of `record`, it may be the command already, which can
// have a -- of its own (uv run -- python); but what stands alone before the -- is none. Of `attach`, a number is the
// process, unless another one follows.
bool is_meant_as_value(const std::vector<std::string>& arguments, std::vector<std::string>::iterator word) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  if (word == end || word->starts_with('-')) return false;
  if (arguments[0] == "attach") return !is_digits(*word) || (word + 1 != end && is_digits(word[1]));
  const bool is_alone = end != arguments.end() && word + 1 == end;
  return is_alone || looks_like_value(*(word - 1), *word);
}

}  // namespace

void join_values(std::vector<std::string>& arguments) {
  for (size_t i = 1; i + 1 < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i] != "--metrics" && arguments[i] != "--sample") continue;
    const auto word = arguments.begin() + static_cast<ptrdiff_t>(i) + 1;
    if (!is_meant_as_value(arguments, word)) {
      const bool is_command = arguments[0] == "record" && !word->starts_with('-');
      if (!is_command) continue;
      if (std::find(word, arguments.end(), "--") != arguments.end()) arguments.insert(word, "--");  // its own is kept
      return;
    }
    arguments[i] += "=" + *word;
    arguments.erase(word);
  }
}

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
           "light steps to record before these: only GPU work and launches, no ops, at nearly full speed; times "
           "and verdicts are taken from them (default: 3 with a GPU, none without)")
      .whole_number();
  count("--wait", args.wait, "steps to skip first; they are timed, but not recorded");
  count("--warmup", args.warmup, "steps to warm up the recorder before recording");
  count("--after", args.after, "steps to time afterwards, without recording");
  flags
      .add_with_optional_value("--sample", args.sample,
                               "sample the Python stacks of all threads meanwhile, into the same trace")
      .check(wrong_in_sample);
  flags.add("--sample-rate", args.sample_rate, "with --sample: samples per second, 0.1 to 10000")
      .check(wrong_in_rate)
      .needs("--sample")
      .show_default();
}

void add_recorder_options(Flags& flags, RecordingArgs& args) {
  for (size_t i = 0; i < format::kRecordOptions.size(); ++i) {
    const format::RecordOption& option = format::kRecordOptions[i];
    if (option.name == kMetrics) {
      add_metrics(flags, option, args);
    } else {
      add_option(flags, option, args.options[i]);
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
      .field("sample_rate", args.sample.empty() ? 0.0 : args.sample_rate)
      .field("wait", args.wait)
      .field("warmup", args.warmup)
      .field("after", args.after);
  json.key("options").begin_object();
  for (size_t i = 0; i < format::kRecordOptions.size(); ++i) {
    const format::RecordOption& option = format::kRecordOptions[i];
    json.field(option.name, is_on(option, args, args.options[i]));
  }
  if (!args.metrics.empty()) {
    json.field("metric_names", metric_names(args.metrics));
    json.field("metric_interval_ms", interval_of(args.metric_interval).value_or(1));
  }
  json.end_object();
}

}  // namespace firelane::cli

#include "cli/recording.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

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

}  // namespace

void add_recording_flags(Flags& flags, RecordingArgs& args, const std::string& steps_help,
                         const std::string& output_help) {
  flags.add("-o,--output", args.output, output_help).show_default();
  flags.add("--force", args.force, "replace an existing file when the new recording is complete");
  const auto count = [&](const std::string& name, int64_t& value, const std::string& help) {
    flags.add(name, value, help).whole_number().show_default();
  };
  count("--steps", args.steps, steps_help);
  count("--light", args.light,
        "light steps to record before these: the GPU's work and launches without ops, nearly at full speed");
  count("--wait", args.wait, "steps to skip first; they are timed, but not recorded");
  count("--warmup", args.warmup, "steps to warm up the recorder before recording");
  count("--after", args.after, "steps to time afterwards, without recording");
}

void add_recorder_options(Flags& flags, RecordingArgs& args) {
  for (size_t i = 0; i < format::kRecordOptions.size(); ++i)
    add_option(flags, format::kRecordOptions[i], args.flag_given[i]);
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
      .field("wait", args.wait)
      .field("warmup", args.warmup)
      .field("after", args.after);
  json.key("options").begin_object();
  for (size_t i = 0; i < format::kRecordOptions.size(); ++i) {
    const format::RecordOption& option = format::kRecordOptions[i];
    json.field(option.name, option.is_on_by_default != args.flag_given[i]);
  }
  json.end_object();
}

}  // namespace firelane::cli

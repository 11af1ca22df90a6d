// firelane record [flags] -- COMMAND: runs a program and records some of its steps.
//
// The command takes this process's place (exec), so its exit status, signals, stdin, arguments
// and process id are its own without our help. What to record travels in FIRELANE_RECORD, and
// PYTHONPATH gets a folder whose sitecustomize.py hands over to firelane._auto once the program
// imports torch. Python children (torchrun's workers) inherit both.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/environment.h"
#include "base/json_writer.h"
#include "cli/output.h"
#include "cli/python_site.h"
#include "cli/verbs.h"
#include "format/record_options.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultOutput = "trace.lane";
constexpr const char* kDefaultFolder = "firelane-run";

struct RecordArgs {
  std::vector<std::string> command;
  std::string output = kDefaultOutput;
  bool force = false;
  int64_t steps = 5;
  int64_t light = 0;
  int64_t wait = 3;
  int64_t warmup = 1;
  int64_t after = 3;
  bool quiet = false;
  bool end = false;
  bool always = false;
  std::string budget = "0.5%";
  std::string keep = "2GiB";
  std::string metrics;  // a port or a path
  bool opentelemetry = false;
  std::string signal;
  std::array<bool, format::kRecordOptions.size()> flag_given{};  // of each option: --shapes, --no-cuda
};

// "0.5%" or "0.005": a share above 0 and up to 1.
std::optional<double> share_of(std::string text) {
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.pop_back();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end) / (is_percent ? 100 : 1);
  if (text.empty() || *end != '\0' || !(value > 0 && value <= 1)) return std::nullopt;
  return value;
}

// "2GiB", "500MB", "1048576": at least 1 MiB.
std::optional<int64_t> bytes_of(const std::string& text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {{"", 1},         {"KB", 1e3},   {"MB", 1e6},    {"GB", 1e9},     {"TB", 1e12},
                                    {"K", 1024},     {"KiB", 1024}, {"M", 0x1p20},  {"MiB", 0x1p20}, {"G", 0x1p30},
                                    {"GiB", 0x1p30}, {"T", 0x1p40}, {"TiB", 0x1p40}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  for (const Unit& unit : kUnits) {
    if (end == text.c_str() || unit.name != end) continue;
    const double bytes = number * unit.bytes;
    if (bytes >= 0x1p20 && bytes <= 0x1p50) return static_cast<int64_t>(bytes);
  }
  return std::nullopt;
}

// A port, or a Unix socket's path made absolute: the program may change its folder.
std::optional<std::string> metrics_place(const std::string& text) {
  std::error_code error;
  if (text.find('/') != std::string::npos || text.ends_with(".sock")) return fs::absolute(text, error).string();
  const bool is_port = text.size() < 6 && text.find_first_not_of("0123456789") == std::string::npos;
  if (text.empty() || (is_port && std::stol(text) < 65536)) return text;
  return std::nullopt;
}

struct RecordingFile {
  std::string path;        // understood by other processes, with other working folders
  uint64_t old_inode = 0;  // of the file that the recording replaces once it is complete; 0: none
};

// The folder of an always-on recording. It is made by the first process that takes a step.
Result<RecordingFile> find_folder(const RecordArgs& args) {
  std::error_code error;
  const fs::path path = fs::absolute(args.output == kDefaultOutput ? kDefaultFolder : args.output, error);
  if (error) return Error{args.output + ": " + error.message()};
  if (!fs::exists(path, error)) return RecordingFile{path.string(), 0};
  const bool is_ours = fs::exists(path / "account.json", error) || fs::exists(path / "rank0", error);
  if (!args.force || !is_ours) {
    return Error{path.filename().string() + " exists; " +
                 (is_ours ? "add --force to replace it, or -o another name" : "choose another folder with -o")};
  }
  fs::remove_all(path, error);
  if (error) return Error{path.string() + ": " + error.message()};
  return RecordingFile{path.string(), 0};
}

Result<RecordingFile> find_output(const RecordArgs& args) {
  if (args.always) return find_folder(args);
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

// A compiled program that is neither Python nor one of those that usually start it. Scripts may start anything.
bool is_hardly_python(const std::string& command) {
  static constexpr std::string_view kLaunchers[] = {"bash", "dash",   "env",    "mpirun",  "nice", "numactl", "sh",
                                                    "srun", "stdbuf", "setsid", "taskset", "time", "timeout", "uv"};
  const std::string name = fs::path(command).filename().string();
  if (name.find("python") != std::string::npos || std::ranges::find(kLaunchers, name) != std::end(kLaunchers))
    return false;
  std::string folders = command.find('/') != std::string::npos ? "" : std::getenv("PATH") ? std::getenv("PATH") : "";
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path file = fs::path(folders.substr(begin, end - begin)) / command;
    std::string magic(4, ' ');
    if (std::ifstream(file, std::ios::binary).read(magic.data(), 4))
      return magic ==
             "\x7f"
             "ELF";
    begin = end + 1;
  }
  return false;
}

// python -I and -E, alone or among other letters (python -uE), ignore PYTHONPATH.
bool ignores_environment(const std::vector<std::string>& command) {
  if (fs::path(command[0]).filename().string().find("python") == std::string::npos) return false;
  for (size_t i = 1; i < command.size() && command[i].size() > 1 && command[i][0] == '-'; ++i) {
    if (command[i][1] == '-') continue;
    const size_t argument = command[i].find_first_of("cmWX");  // these letters take what follows
    if (command[i].substr(0, argument).find_first_of("IE") != std::string::npos) return true;
    if (argument == std::string::npos) continue;
    if (command[i][argument] == 'c' || command[i][argument] == 'm') return false;
    if (argument + 1 == command[i].size()) ++i;
  }
  return false;
}

std::string plan_json(const RecordArgs& args, const RecordingFile& output) {
  JsonWriter json;
  json.begin_object().field("output", output.path);
  json.field("old_inode", static_cast<int64_t>(output.old_inode)).field("process", static_cast<int64_t>(getpid()));
  json.field("steps", args.steps)
      .field("light", args.light)
      .field("wait", args.wait)
      .field("warmup", args.warmup)
      .field("after", args.after);
  json.field("quiet", args.quiet).field("end", args.end).field("always", args.always);
  json.field("budget", share_of(args.budget).value_or(0)).field("keep_bytes", bytes_of(args.keep).value_or(0));
  json.field("metrics", metrics_place(args.metrics).value_or("")).field("opentelemetry", args.opentelemetry);
  json.field("signal", args.signal);
  json.key("options").begin_object();
  for (size_t i = 0; i < format::kRecordOptions.size(); ++i) {
    const format::RecordOption& option = format::kRecordOptions[i];
    json.field(option.name, option.is_on_by_default != args.flag_given[i]);
  }
  return json.end_object().end_object().take();
}

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

Result<int> run_record(const RecordArgs& args) {
  if (!share_of(args.budget)) return complain("--budget: a share of the time, such as 0.5%", kExitUsage);
  if (!bytes_of(args.keep)) return complain("--keep: a size of at least 1MiB, such as 2GiB", kExitUsage);
  if (!metrics_place(args.metrics))
    return complain("--metrics: a port (0: any), or a Unix socket's path with a slash or .sock", kExitUsage);
  if (!args.always && (!args.metrics.empty() || args.opentelemetry || !args.signal.empty()))
    return complain("--metrics, --opentelemetry and --signal need --always", kExitUsage);
  FL_TRY_VOID(put_site_on_python_path("record"));
  FL_TRY(const RecordingFile output, find_output(args));
  setenv(environment::kRecord.name, plan_json(args, output).c_str(), 1);

  std::vector<char*> words;
  for (const std::string& word : args.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (is_hardly_python(args.command[0]))
    std::fprintf(stderr, "firelane: %s: only Python programs that import torch are recorded\n", words[0]);
  if (ignores_environment(args.command))
    std::fputs("firelane: python -I and -E ignore PYTHONPATH, so nothing will be recorded; leave them out\n", stderr);
  execvp(words[0], words.data());
  return Error{args.command[0] + ": " + std::strerror(errno) + "; the command to run goes after --"};
}

}  // namespace

Verb record_verb() {
  return {
      .name = "record",
      .sentence = "Runs a PyTorch program unchanged and records some of its steps.",
      .examples = {"firelane record -- python train.py --lr 0.1",
                   "firelane record --steps 3 --shapes --memory -o run.lane -- torchrun --nproc-per-node 2 train.py"},
      .setup = [](Flags& flags) -> VerbBody {
        auto args = std::make_shared<RecordArgs>();
        flags.add("command", args->command, "the program and its arguments, after --").required();
        flags
            .add("-o,--output", args->output,
                 "the trace, a .lane file; with several ranks one each: trace.rank0.lane, trace.rank1.lane")
            .show_default();
        flags.add("--force", args->force, "replace an existing file when the new recording is complete");
        const auto count = [&](const std::string& name, int64_t& value, const std::string& help) {
          flags.add(name, value, help).whole_number().show_default();
        };
        count("--steps", args->steps, "steps to record; 0: the whole program");
        count("--light", args->light,
              "light steps to record before these: the GPU's work and launches without ops, nearly at full speed");
        count("--wait", args->wait, "steps to skip first; they are timed, but not recorded");
        count("--warmup", args->warmup, "steps to warm up the recorder before recording");
        count("--after", args->after, "steps to time afterwards, without recording");
        flags.add("--always", args->always,
                  "record the whole job within a budget, into a folder (-o, default firelane-run): see docs/always.md");
        flags.add("--budget", args->budget, "with --always: the share of the time that recording may take")
            .show_default();
        flags.add("--keep", args->keep, "with --always: the most that the folder may hold").show_default();
        flags
            .add("--metrics", args->metrics,
                 "with --always: serve Prometheus metrics at this port on loopback (0: any), or at a Unix socket")
            .value_name("PORT|PATH");
        flags.add("--opentelemetry", args->opentelemetry,
                  "with --always: hand metrics to OpenTelemetry, whose SDK the program needs");
        flags.add("--signal", args->signal, "with --always: record when this signal comes").one_of({"USR1", "USR2"});
        for (size_t i = 0; i < format::kRecordOptions.size(); ++i)
          add_option(flags, format::kRecordOptions[i], args->flag_given[i]);
        flags.add("--end", args->end, "end the program when the trace is complete, instead of letting it run on");
        flags.add("--quiet", args->quiet, "print no table and no verdict at the end");
        return [args] { return run_record(*args); };
      }};
}

}  // namespace firelane::cli

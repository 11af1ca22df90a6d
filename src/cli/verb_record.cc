// firelane record [flags] -- COMMAND: runs a program and records some of its steps.
//
// The command takes this process's place (exec), so its exit status, signals, stdin, arguments
// and process id are its own without our help. What to record travels in FIRELANE_RECORD, and
// PYTHONPATH gets a folder whose sitecustomize.py hands over to firelane._auto once the program
// imports torch. Python children (torchrun's workers) inherit both.
#include <unistd.h>

#include <algorithm>
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
#include "cli/recording.h"
#include "cli/verbs.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultFolder = "firelane-run";

struct RecordArgs {
  std::vector<std::string> command;
  RecordingArgs recording;
  bool quiet = false;
  bool end = false;
  std::string budget = "0.5%";
  std::string keep = "2GiB";
  std::string prometheus;  // a port or a path
  bool opentelemetry = false;
  std::string signal;
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
std::optional<std::string> serving_place(const std::string& text) {
  std::error_code error;
  if (text.find('/') != std::string::npos || text.ends_with(".sock")) return fs::absolute(text, error).string();
  const bool is_port = text.size() < 6 && text.find_first_not_of("0123456789") == std::string::npos;
  if (text.empty() || (is_port && std::stol(text) < 65536)) return text;
  return std::nullopt;
}

// The folder of an always-on recording. It is made by the first process that takes a step.
Result<RecordingFile> find_folder(const RecordArgs& args) {
  std::error_code error;
  const std::string& output = args.recording.output;
  const fs::path path = fs::absolute(output == kDefaultRecording ? kDefaultFolder : output, error);
  if (error) return Error{output + ": " + error.message()};
  if (!fs::exists(path, error)) return RecordingFile{path.string(), 0};
  const bool is_ours = fs::exists(path / "account.json", error) || fs::exists(path / "rank0", error);
  if (!args.recording.force || !is_ours) {
    return Error{path.filename().string() + " exists; " +
                 (is_ours ? "add --force to replace it, or -o another name" : "choose another folder with -o")};
  }
  fs::remove_all(path, error);
  if (error) return Error{path.string() + ": " + error.message()};
  return RecordingFile{path.string(), 0};
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
  json.begin_object().field("process", static_cast<int64_t>(getpid()));
  json.field("quiet", args.quiet).field("end", args.end).field("always", args.recording.always);
  json.field("budget", share_of(args.budget).value_or(0)).field("keep_bytes", bytes_of(args.keep).value_or(0));
  json.field("prometheus", serving_place(args.prometheus).value_or("")).field("opentelemetry", args.opentelemetry);
  json.field("signal", args.signal);
  add_recording(json, args.recording, output);
  return json.end_object().take();
}

Result<int> run_record(const RecordArgs& args) {
  if (!share_of(args.budget)) return complain("--budget: a share of the time, such as 0.5%", kExitUsage);
  if (!bytes_of(args.keep)) return complain("--keep: a size of at least 1MiB, such as 2GiB", kExitUsage);
  if (!serving_place(args.prometheus))
    return complain("--prometheus: a port (0: any), or a Unix socket's path with a slash or .sock", kExitUsage);
  if (!args.recording.always && (!args.prometheus.empty() || args.opentelemetry || !args.signal.empty()))
    return complain("--prometheus, --opentelemetry and --signal need --always", kExitUsage);
  if (args.recording.always && !args.recording.sample.empty())
    return complain(
        "--sample cannot be combined with --always; firelane attach PID --sample samples some steps of the job while "
        "it runs",
        kExitUsage);
  FL_TRY_VOID(put_site_on_python_path("record"));
  FL_TRY(const RecordingFile output, args.recording.always ? find_folder(args) : find_recording_file(args.recording));
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
      .sentence = "Run a PyTorch program unchanged and record some of its steps.",
      .examples = {"firelane record -- python train.py --lr 0.1",
                   "firelane record --steps 3 --stacks -o run.lane -- torchrun --nproc-per-node 2 train.py"},
      .setup = [](Flags& flags) -> VerbBody {
        auto args = std::make_shared<RecordArgs>();
        flags.add("command", args->command, "the program and its arguments, after --").required();
        add_recording_flags(
            flags, args->recording, "steps to record; 0: the whole program",
            "the trace, a .lane file; with several ranks, one each: trace.rank0.lane, trace.rank1.lane");
        flags.add("--always", args->recording.always,
                  "record the whole job within a budget, into a folder (-o, default firelane-run): see docs/always.md");
        flags.add("--budget", args->budget, "with --always: the share of time that recording may cost").show_default();
        flags.add("--keep", args->keep, "with --always: the most that the folder may hold").show_default();
        flags
            .add("--prometheus", args->prometheus,
                 "with --always: serve Prometheus metrics at this port on loopback (0: any), or at a Unix socket")
            .value_name("PORT|PATH");
        flags.add("--opentelemetry", args->opentelemetry,
                  "with --always: export metrics with OpenTelemetry; needs its SDK in the program");
        flags.add("--signal", args->signal, "with --always: record when the program gets this signal")
            .one_of({"USR1", "USR2"});
        add_recorder_options(flags, args->recording);
        flags.add("--end", args->end, "end the program when the trace is complete, instead of letting it continue");
        flags.add("--quiet", args->quiet, "print no table and no verdict at the end");
        return [args] { return run_record(*args); };
      }};
}

}  // namespace firelane::cli

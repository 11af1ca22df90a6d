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

struct RecordArgs {
  std::vector<std::string> command;
  std::string output = "trace.lane";
  bool force = false;
  int64_t steps = 5;
  int64_t light = 0;
  int64_t wait = 3;
  int64_t warmup = 1;
  int64_t after = 3;
  bool quiet = false;
  std::array<bool, format::kRecordOptions.size()> flag_given{};  // of each option: --shapes, --no-cuda
};

struct RecordingFile {
  std::string path;        // understood by other processes, with other working folders
  uint64_t old_inode = 0;  // of the file that the recording replaces once it is complete; 0: none
};

Result<RecordingFile> find_output(const RecordArgs& args) {
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
  json.field("quiet", args.quiet);
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
        for (size_t i = 0; i < format::kRecordOptions.size(); ++i)
          add_option(flags, format::kRecordOptions[i], args->flag_given[i]);
        flags.add("--quiet", args->quiet, "print no table and no verdict at the end");
        return [args] { return run_record(*args); };
      }};
}

}  // namespace firelane::cli

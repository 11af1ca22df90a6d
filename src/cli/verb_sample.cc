// firelane sample: the stacks of all threads of a Python program, some times a second, read from outside while it runs.
//
// For `-- COMMAND` the command is started as a child, and its end is ours; `-p PID` looks at one that runs already.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "base/shell_quoted.h"
#include "cli/output.h"
#include "cli/sampled.h"
#include "cli/verbs.h"
#include "live/python.h"
#include "live/sampler.h"
#include "live/stacks_text.h"
#include "report/table.h"

extern char** environ;

namespace firelane::cli {

namespace {

struct SampleArgs {
  std::vector<std::string> command;
  int64_t pid = 0;
  double rate = 100;
  double duration_s = 0;
  bool native = false;
  bool once = false;
  std::string path;
  size_t rows = 20;
  OutputOptions output;  // of the table
};

std::atomic<bool> g_stop = false;

void stop(int) { g_stop = true; }

void stop_on(std::initializer_list<int> signals) {
  struct sigaction action{};
  action.sa_handler = stop;
  for (const int signal : signals) ::sigaction(signal, &action, nullptr);
}

bool is_collapsed(const std::string& path) {
  return path.ends_with(".txt") || path.ends_with(".folded") || path.ends_with(".collapsed");
}

Result<pid_t> start(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words[0], nullptr, nullptr, words.data(), environ);
  if (failed != 0) return Error{command[0] + ": " + std::strerror(failed) + "; the command to run goes after --"};
  return child;
}

// The exit code if the child has ended, as a shell would say it. It stays to be waited for.
std::optional<int> ended(pid_t child) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return std::nullopt;
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

int wait_for_end(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A program that was just started has no Python in it yet: the command may be a script, and Python takes a while.
Result<live::Samples> sample_from_start(pid_t child, const live::SampleOptions& options) {
  Error last{"it ended before Python had started in it"};
  while (!ended(child) && !g_stop.load()) {
    const auto process = live::look_at(child);
    if (process.ok()) {
      const auto python = live::find_python(process.value());
      if (python.ok()) {
        auto samples = live::sample(process.value(), python.value(), options);
        if (samples.ok()) return samples;
        last = samples.error();
        if (live::layout_of(python.value().version) == nullptr) return last;
      } else {
        last = python.error();
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return last;
}

Result<void> write_stacks(const SampleArgs& args, const live::Samples& samples, const std::string& name) {
  FL_TRY(Output file, Output::open({.path = args.path, .force = args.output.force}));
  FL_TRY_VOID(file.write(is_collapsed(args.path) ? collapsed_of(samples) : speedscope_of(samples, name)));
  return file.close();
}

Result<void> answer(const SampleArgs& args, const live::Samples& samples, const std::string& name) {
  FL_TRY(Output output, Output::open(args.output));
  const bool for_people = output.form() == report::Form::kText || output.form() == report::Form::kMarkdown;
  report::Report report = sample_report(samples, for_people ? args.rows : 0);
  if (!args.path.empty()) {
    FL_TRY_VOID(write_stacks(args, samples, name));
    report.notes.emplace_back("wrote " + args.path,
                              "firelane view " + shell_quoted(args.path) + " shows it as a flame graph");
  }
  FL_TRY_VOID(output.write(report::render(report, output.form(), output.style())));
  return output.close();
}

Result<int> sample_running(const SampleArgs& args, const live::SampleOptions& options) {
  FL_TRY(const live::Process process, live::look_at(static_cast<pid_t>(args.pid)));
  FL_TRY(const live::Python python, live::find_python(process));
  FL_TRY_VOID(live::may_trace(process));
  stop_on({SIGINT, SIGTERM});
  FL_TRY(const live::Samples samples, live::sample(process, python, options));
  FL_TRY_VOID(answer(args, samples, process.command));
  return kExitOk;
}

// What py-spy calls a dump.
Result<int> print_once(const SampleArgs& args) {
  FL_TRY(const live::Process process, live::look_at(static_cast<pid_t>(args.pid)));
  FL_TRY_VOID(live::may_trace(process));
  FL_TRY(const std::string text, live::stacks_text(process, {.native = args.native}));
  FL_TRY(Output output, Output::open({.path = args.path.empty() ? "-" : args.path, .force = args.output.force}));
  FL_TRY_VOID(output.write(text));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

Result<int> sample_command(const SampleArgs& args, const live::SampleOptions& options) {
  // Ctrl-C reaches the child, too: its end is what is waited for, and the answer comes after it.
  stop_on({SIGTERM});
  FL_TRY(const pid_t child, start(args.command));
  struct sigaction ignore{};
  ignore.sa_handler = [](int) {};
  ::sigaction(SIGINT, &ignore, nullptr);
  const auto samples = sample_from_start(child, options);
  const int exit_code = wait_for_end(child);
  std::string name;
  for (const std::string& word : args.command) name += (name.empty() ? "" : " ") + word;
  if (!samples.ok()) {
    complain(samples.error().message, kExitFailed);
    return exit_code != 0 ? exit_code : kExitFailed;
  }
  FL_TRY_VOID(answer(args, samples.value(), name));
  return exit_code;
}

Result<int> run_sample(const SampleArgs& args) {
  if ((args.pid != 0) == !args.command.empty())
    return complain("sample: either -p PID or -- python program.py", kExitUsage);
  if (args.once) {
    if (args.pid == 0) return complain("sample: --once needs a running program: -p PID", kExitUsage);
    return print_once(args);
  }
  if (!args.path.empty()) {  // a bad name is known at once
    FL_TRY(const Output unused, Output::open({.path = args.path, .force = args.output.force}));
  }
  const live::SampleOptions options{
      .rate = args.rate, .duration_s = args.duration_s, .native = args.native, .stop = &g_stop};
  return args.pid != 0 ? sample_running(args, options) : sample_command(args, options);
}

}  // namespace

Verb sample_verb() {
  return {
      .name = "sample",
      .sentence =
          "Sample the stacks of all threads of a Python program, without stopping it or loading anything into it.",
      .examples = {"firelane sample --rate 200 --native -o stacks.speedscope.json -- python train.py",
                   "firelane sample -p 4711 --once --native"},
      .setup = [](Flags& flags) -> VerbBody {
        auto args = std::make_shared<SampleArgs>();
        flags.add("command", args->command, "the program and its arguments, after --");
        flags.add("-p,--pid", args->pid, "a program that is already running").between(int64_t{1}, int64_t{1} << 30);
        flags.add("--rate", args->rate, "times a second").between(live::kLowestRate, live::kHighestRate).show_default();
        flags.add("--duration", args->duration_s, "seconds; 0: until the program ends, or Ctrl-C")
            .between(0.0, 1e9)
            .show_default();
        flags.add("--once", args->once, "print the stacks of all threads as they are now, and exit");
        flags.add("--native", args->native,
                  "C and C++ frames as well, and threads without Python (needs libdw: apt install libdw1)");
        flags.add("-o,--output", args->path,
                  "the stacks: speedscope's JSON; collapsed stacks if the name ends in .txt, .folded or .collapsed");
        flags.add("--force", args->output.force, "replace an existing file");
        flags.add("--rows", args->rows, "show this many functions and threads; 0 = all").show_default();
        flags.add("--json", args->output.json, "print JSON");
        flags.add("--csv", args->output.csv, "print CSV");
        flags.add("--wide", args->output.wide, "do not shorten long names");
        return [args] { return run_sample(*args); };
      }};
}

}  // namespace firelane::cli

// firelane trigger PID|RUN: asks a program under firelane record --always to keep what it has and to record a full
// step; or one under KINETO_USE_DAEMON=1 to write a trace, through firelane daemon.
//
// A running recording notes its folder in FOLDER/firelane-UID/PID.always of the temporary folder, and looks for a file
// named "trigger" in it once a second.
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/shell_quoted.h"
#include "cli/kineto_trigger.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

struct TriggerArgs {
  std::string target;
  std::string reason = "asked for by firelane trigger";
  KinetoTrigger kineto;
};

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
}

// The folder that a process records into, by the note that it left.
std::string run_of_process(const std::string& pid) {
  std::error_code error;
  std::ifstream in(fs::temp_directory_path(error) / ("firelane-" + std::to_string(::getuid())) / (pid + ".always"));
  std::string run;
  std::getline(in, run);
  return run;
}

Result<std::string> ask_recording(const fs::path& run, const std::string& reason) {
  std::ofstream file(run / "trigger");
  file << reason << "\n";
  file.close();
  if (!file) return Error{(run / "trigger").string() + ": cannot be written"};
  return "asked; the next steps are recorded into " + (run / "kept").string() + "; then: firelane why " +
         shell_quoted(run.string()) + "\n";
}

Result<std::string> ask_target(TriggerArgs args) {
  std::error_code error;
  const std::string& target = args.target;
  const bool is_job = target.starts_with("job:") && is_number(target.substr(4));
  if (!is_number(target) && !is_job) {
    if (fs::exists(fs::path(target) / "account.json", error)) return ask_recording(target, args.reason);
    return Error{target + ": neither a process id nor the folder of an always-on recording"};
  }
  if (!is_job) {
    if (::kill(static_cast<pid_t>(std::stol(target)), 0) != 0 && errno == ESRCH)
      return Error{target + ": no such process"};
    if (const std::string run = run_of_process(target); !run.empty()) return ask_recording(run, args.reason);
  }
  args.kineto.target = is_job ? "job " + target.substr(4) : "trigger " + target;
  Result<std::string> text = trace_by_daemon(args.kineto);
  if (text.ok()) return text;
  const std::string who = is_job ? "" : ": not recorded by firelane record --always, or by another user; and";
  return Error{target + who + (is_job ? ": " : " ") + text.error().message};
}

Result<int> run_trigger(const TriggerArgs& args) {
  FL_TRY(Output output, Output::open({}));
  FL_TRY(const std::string text, ask_target(args));
  FL_TRY_VOID(output.write(text));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb trigger_verb() {
  return {
      .name = "trigger",
      .sentence =
          "Ask a running program for a recording; it runs under firelane record --always, or is known to firelane "
          "daemon.",
      .examples = {"firelane trigger run --reason \"loss is NaN\"",
                   "firelane trigger 4711 --steps 3 --shapes -o train.json"},
      .setup = [](Flags& flags) -> VerbBody {
        auto args = std::make_shared<TriggerArgs>();
        KinetoTrigger& kineto = args->kineto;
        flags
            .add("TARGET", args->target,
                 "its process id, or the folder that it records into; job:1234 for a Slurm job of the daemon's")
            .required();
        flags.add("--reason", args->reason, "kept with the incident");
        const std::string daemon = "through firelane daemon: ";
        flags.add("-o,--output", kineto.output, daemon + "the trace; each process adds its id: trace_4711.json")
            .show_default();
        flags.add("--force", kineto.force, daemon + "replace an older trace");
        flags.add("--duration-ms", kineto.duration_ms, daemon + "how long to trace")
            .whole_number()
            .between(int64_t{1}, int64_t{600'000})
            .show_default();
        flags
            .add("--steps", kineto.steps,
                 daemon + "trace this many steps of its optimizer instead; Kineto counts them from its first trace on")
            .whole_number();
        flags.add("--shapes", kineto.shapes, daemon + "record the shapes of inputs");
        flags.add("--memory", kineto.memory, daemon + "record allocations");
        flags.add("--stacks", kineto.stacks, daemon + "record Python stacks");
        flags.add("--no-wait", kineto.no_wait, daemon + "do not wait until the trace is written");
        return [args] { return run_trigger(*args); };
      }};
}

}  // namespace firelane::cli

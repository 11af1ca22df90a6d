// firelane trigger PID|RUN: asks a program under firelane record --always to keep what it has and to record a full
// step.
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

#include "cli/output.h"
#include "cli/verbs.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

struct TriggerArgs {
  std::string target;
  std::string reason = "asked for by firelane trigger";
};

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
}

Result<fs::path> run_of(const std::string& target) {
  std::error_code error;
  if (!is_number(target)) {
    if (fs::exists(fs::path(target) / "account.json", error)) return fs::path(target);
    return Error{target + ": neither a process id nor the folder of an always-on recording"};
  }
  if (::kill(static_cast<pid_t>(std::stol(target)), 0) != 0 && errno == ESRCH)
    return Error{target + ": no such process"};
  const fs::path note =
      fs::temp_directory_path(error) / ("firelane-" + std::to_string(::getuid())) / (target + ".always");
  std::ifstream in(note);
  std::string run;
  if (!std::getline(in, run)) return Error{target + ": not recorded by firelane record --always, or by another user"};
  return fs::path(run);
}

Result<int> run_trigger(const TriggerArgs& args) {
  FL_TRY(Output output, Output::open({}));
  FL_TRY(const fs::path run, run_of(args.target));
  std::ofstream file(run / "trigger");
  file << args.reason << "\n";
  file.close();
  if (!file) return Error{(run / "trigger").string() + ": cannot be written"};
  FL_TRY_VOID(output.write("asked; the next steps are recorded into " + (run / "kept").string() +
                           "; then: firelane why " + run.string() + "\n"));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb trigger_verb() {
  return {.name = "trigger",
          .sentence = "Ask a program under firelane record --always to keep its newest steps and to record a full one.",
          .examples = {"firelane trigger 4711", "firelane trigger run --reason \"loss is NaN\""},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<TriggerArgs>();
            flags.add("TARGET", args->target, "its process id, or the folder that it records into").required();
            flags.add("--reason", args->reason, "kept with the incident");
            return [args] { return run_trigger(*args); };
          }};
}

}  // namespace firelane::cli

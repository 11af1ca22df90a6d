// firelane attach PID: records some steps of a program that runs already, and leaves it as it was.
//
// A line of Python is run in the program (live/inject.h). It starts a thread that connects to this process
// (cli/attached.h), loads firelane._attach, and does there what firelane record does in a program from its start.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <sstream>

#include "base/json_writer.h"
#include "base/shell_quoted.h"
#include "cli/attached.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/python_site.h"
#include "cli/recording.h"
#include "cli/verbs.h"
#include "live/inject.h"
#include "live/process.h"
#include "live/python.h"
#include "report/diagnose_report.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

struct AttachArgs {
  int64_t pid = 0;
  double timeout_s = 120;
  bool quiet = false;
  RecordingArgs recording;
};

struct Target {
  live::Process process;
  live::Python python;
  fs::path package;             // ours
  bool has_our_module = false;  // a recorder for its Python is in it; else the program's own installation has to do
};

bool has_module_for(const fs::path& package, const live::PythonVersion& version) {
  std::error_code error;
  for (fs::directory_iterator at(package, error), end; at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with("_recorder." + version.tag() + "-")) return true;
  }
  return false;
}

Result<Target> find_target(const AttachArgs& args) {
  Target out;
  FL_TRY(out.process, live::look_at(static_cast<pid_t>(args.pid)));
  const std::string name = std::to_string(args.pid);
  if (out.process.state == 'T') return Error{name + ": is stopped; kill -CONT " + name + " first"};
  if (!live::shares_files(out.process.pid)) {
    return Error{name +
                 ": runs in another container, where this firelane cannot be loaded; run firelane attach inside "
                 "it (docker exec, kubectl exec)"};
  }
  FL_TRY(out.python, live::find_python(out.process));
  if (!live::has_torch(out.process)) {
    return Error{name + ": has not imported torch (" + out.process.command.substr(0, 60) +
                 "); if it is a launcher, name a worker process"};
  }
  out.package = find_python_package();
  if (out.package.empty()) return Error{"attach: the Python package firelane was not found; pip install firelane"};
  out.has_our_module = has_module_for(out.package, out.python.version);
  FL_TRY_VOID(live::may_trace(out.process));
  return out;
}

// As a string literal of Python.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char byte : text) {
    if (byte == '\\' || byte == '\'') out += '\\';
    out += byte;
  }
  return out + "'";
}

// In the program: runs the entry, which starts a thread and returns. It binds no name there and raises nothing.
std::string code_for(const Target& target, const std::string& address) {
  JsonWriter place;
  place.begin_object().field("address", address).field("package", target.package.string());
  place.field("prefer_ours", target.has_our_module).field("page_bytes", int64_t{live::kPageBytes}).end_object();
  const std::string entry = (target.package / "_attach_entry.py").string();
  return "try:\n __import__('builtins').exec(__import__('io').open(" + quoted(entry) +
         ",encoding='utf-8').read(),{'PLACE':" + quoted(place.take()) +
         ",'PAGE':__import__('builtins').int('@PAGE@')})\nexcept BaseException:pass\n";
}

std::string plan_json(const AttachArgs& args, const RecordingFile& output) {
  JsonWriter json;
  json.begin_object().field("quiet", true).field("timeout_s", args.timeout_s);
  add_recording(json, args.recording, output);
  return json.end_object().take();
}

struct Outcome {
  int64_t recorded = 0;  // steps
  int64_t unrecorded = 0;
  std::string path;
};

// Follows the program's messages to the end.
Result<Outcome> converse(Channel& channel, const AttachArgs& args) {
  const std::string name = std::to_string(args.pid);
  for (;;) {
    const Message message = channel.next();
    if (message.word == "attached") {
      if (!args.quiet) fmt::print(stderr, "firelane: attached to {}; Ctrl-C detaches\n", name);
    } else if (message.word == "note") {
      fmt::print(stderr, "firelane: {}\n", message.text);
    } else if (message.word == "refused") {
      return Error{name + ": " + message.text};
    } else if (message.word == "done") {
      Outcome out;
      std::istringstream(message.text) >> out.recorded >> out.unrecorded;
      const size_t path = message.text.find('/');
      out.path = path == std::string::npos ? "" : message.text.substr(path);
      return out;
    } else if (message.word.empty()) {
      return Error{name + (message.program_ended ? ": the program ended before the trace was complete"
                                                 : ": the program closed the connection without an answer")};
    }
  }
}

Result<int> run_attach(const AttachArgs& args) {
  if (args.recording.steps == 0) return complain("--steps: at least 1", kExitUsage);
  FL_TRY(const Target target, find_target(args));
  FL_TRY(const RecordingFile file, find_recording_file(args.recording));
  FL_TRY(Channel channel, Channel::open());
  FL_TRY(const live::Asked asked, live::run_in(target.process, target.python, code_for(target, channel.address())));
  FL_TRY(const bool connected, channel.wait_for(target.process, args.timeout_s));
  if (!connected) {
    return Error{
        fmt::format("{}: its main thread has not run any Python code since the request, so nothing was started in it "
                    "(--timeout {:g} s)",
                    args.pid, args.timeout_s)};
  }
  channel.send(plan_json(args, file));
  FL_TRY(const Outcome outcome, converse(channel, args));
  const std::string shown =
      shell_quoted(fs::path(file.path) == fs::path(outcome.path) ? args.recording.output : outcome.path);
  if (!args.quiet) {
    FL_TRY(const auto trace, open_trace(outcome.path));
    fmt::print("{}\n", report::short_diagnosis(*trace, {.style = {.color = wants_color(stdout)}}));
  }
  fmt::print("{} step{} recorded, {} timed without recording; wrote {}; next: firelane diagnose {}, firelane view {}\n",
             outcome.recorded, outcome.recorded == 1 ? "" : "s", outcome.unrecorded, shown, shown, shown);
  return kExitOk;
}

}  // namespace

Verb attach_verb() {
  return {.name = "attach",
          .sentence = "Record some steps of a PyTorch program that is already running, and leave it as it was.",
          .examples = {"firelane attach 4711", "firelane attach 4711 --steps 3 --stacks -o run.lane"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<AttachArgs>();
            flags.add("PID", args->pid, "the program's process id").required().between(int64_t{1}, int64_t{1} << 30);
            add_recording_flags(flags, args->recording, "steps to record", "the trace, a .lane file");
            flags.add("--timeout", args->timeout_s, "give up when no step ends within this many seconds")
                .between(0.1, 86400.0)
                .show_default();
            add_recorder_options(flags, args->recording);
            flags.add("--quiet", args->quiet, "print no verdict at the end");
            return [args] { return run_attach(*args); };
          }};
}

}  // namespace firelane::cli

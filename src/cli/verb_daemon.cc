// firelane daemon: answers Kineto's on-demand protocol, so that unmodified PyTorch can be traced by firelane trigger.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/kineto_trigger.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "daemon/service.h"

namespace firelane::cli {

namespace {

struct DaemonArgs {
  bool list = false;
  bool quiet = false;
};

std::array<int, 2> g_wake = {-1, -1};  // a signal's handler can use nothing else

void end_by_signal(int) {
  const int saved = errno;
  if (::write(g_wake[1], "x", 1) < 0) {
  }
  errno = saved;
}

Result<void> catch_signals() {
  if (::pipe2(g_wake.data(), O_CLOEXEC | O_NONBLOCK) != 0) return Error{std::string("a pipe: ") + std::strerror(errno)};
  struct sigaction action{};
  action.sa_handler = end_by_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
  return {};
}

void say(const std::string& line) { std::fprintf(stderr, "firelane: %s\n", line.c_str()); }

Result<int> list_processes() {
  FL_TRY(Output output, Output::open({}));
  FL_TRY(const std::vector<KinetoProcess> processes, known_processes());
  std::string text;
  for (const KinetoProcess& process : processes) text += describe(process) + "\n";
  FL_TRY_VOID(
      output.write(processes.empty() ? "no process has contacted the daemon yet; they do every five seconds\n" : text));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

Result<int> run_daemon(const DaemonArgs& args) {
  if (args.list) return list_processes();
  FL_TRY_VOID(catch_signals());
  FL_TRY(daemon::Endpoint endpoint, daemon::Endpoint::listen(daemon::kEndpoint));
  const auto log = [&](const std::string& line) {
    if (!args.quiet) say(line);
  };
  log("waiting for programs under KINETO_USE_DAEMON=1; firelane trigger PID makes one write a trace");
  daemon::Service(std::move(endpoint), log, daemon::now_ns()).serve(g_wake[0]);
  return kExitOk;
}

}  // namespace

Verb daemon_verb() {
  return {.name = "daemon",
          .sentence =
              "Wait for PyTorch programs started with KINETO_USE_DAEMON=1, so that firelane trigger can trace them.",
          .examples = {"firelane daemon", "firelane daemon --list"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<DaemonArgs>();
            flags.add("--list", args->list, "print the programs that the running daemon knows, and exit");
            flags.add("--quiet", args->quiet, "do not log requests on stderr");
            return [args] { return run_daemon(*args); };
          }};
}

}  // namespace firelane::cli

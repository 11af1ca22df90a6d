#include "cli/viewing.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "cli/verbs.h"
#include "import/load.h"
#include "serve/api.h"
#include "serve/server.h"
#include "traces/trace_set.h"

namespace firelane::cli {

namespace {

bool has_display() {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
}

// By a child of a child, which nobody has to wait for.
void open_browser(const std::string& url) {
  const pid_t child = ::fork();
  if (child < 0) return;
  if (child == 0) {
    if (::fork() == 0) {
      std::freopen("/dev/null", "w", stdout);
      std::freopen("/dev/null", "w", stderr);
      ::execlp("xdg-open", "xdg-open", url.c_str(), static_cast<char*>(nullptr));
    }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

// A trace that cannot be read is said here as well as in the page. Without any other there is nothing to serve.
void tell_failure(const Error& error, bool none_left) {
  std::fprintf(stderr, "firelane: %s\n", error.message.c_str());
  if (!none_left) return;
  std::fflush(nullptr);
  ::_exit(kExitFailed);
}

}  // namespace

void add_view_options(Flags& flags, ViewOptions& options) {
  flags.add("--port", options.port, "listen on this port of 127.0.0.1 (default: any that is free)")
      .between(int64_t{1}, int64_t{65535})
      .value_name("N");
  flags.add("--no-open", options.no_open, "print the address, open no browser");
}

Result<int> serve_traces(const std::vector<std::string>& paths, const ViewOptions& options,
                         serve::Comparison comparison) {
  for (const std::string& path : paths) {
    if (path != "-" && ::access(path.c_str(), R_OK) != 0) return Error{path + ": " + std::strerror(errno)};
  }
  // Taken by sigwait below; blocked before there is a thread, so that all inherit it.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  std::atomic<size_t> failed = 0;
  const auto load = [&](const std::string& path, const LoadProgress& progress) {
    Result<Model> model = importer::load_trace(path, {.progress = progress});
    if (!model.ok()) tell_failure(model.error(), ++failed == paths.size());
    return model;
  };
  serve::Api api(std::make_shared<TraceSet>(paths, load, serve::prepare), FIRELANE_VERSION, std::move(comparison));
  FL_TRY(const auto server, serve::Server::start(api, {.port = options.port}));
  std::printf("%s\n", server->url().c_str());
  std::fflush(stdout);
  if (!options.no_open && has_display()) open_browser(server->url());
  std::fprintf(stderr, "Ctrl-C ends it.\n");
  int signal = 0;
  ::sigwait(&signals, &signal);
  // At once: a trace that still loads and a query that still runs have nothing that would be lost.
  std::fflush(nullptr);
  ::_exit(kExitOk);
}

}  // namespace firelane::cli

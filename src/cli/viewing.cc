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

// Taken by sigwait; blocked before there is a thread, so that all inherit it.
sigset_t stop_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  return signals;
}
void block_signals() {
  const sigset_t signals = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// REQUIRES: block_signals() before the first thread.
Result<int> serve_until_stopped(serve::Api& api, const ViewOptions& options) {
  FL_TRY(const auto server, serve::Server::start(api, {.port = options.port}));
  std::printf("%s\n", server->url().c_str());
  std::fflush(stdout);
  if (!options.no_open && has_display()) open_browser(server->url());
  std::fprintf(stderr, "Ctrl-C ends it.\n");
  const sigset_t signals = stop_signals();
  int signal = 0;
  ::sigwait(&signals, &signal);
  // At once: a trace that still loads and a query that still runs have nothing that would be lost.
  std::fflush(nullptr);
  ::_exit(kExitOk);
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
  block_signals();
  std::atomic<size_t> failed = 0;
  const auto load = [&](const std::string& path, const LoadProgress& progress) {
    Result<Model> model = importer::load_trace(
        path,
        {.progress = progress, .execution_trace = options.joined.execution_trace, .snapshot = options.joined.snapshot});
    if (!model.ok()) tell_failure(model.error(), ++failed == paths.size());
    return model;
  };
  serve::Api api(std::make_shared<TraceSet>(paths, load, serve::prepare), FIRELANE_VERSION, std::move(comparison));
  return serve_until_stopped(api, options);
}

Result<int> serve_ranks(const std::vector<std::string>& names, const RankFilesOptions& files, double price_per_hour,
                        const ViewOptions& options) {
  FL_TRY(const auto job, open_job(names, files));
  block_signals();
  serve::ServedJob served{.job = job, .price_per_hour = price_per_hour};
  std::vector<std::string> paths;
  for (const std::string& trace : traces_of_ranks(*job, names)) {
    served.trace_of_rank.push_back(trace.empty() ? -1 : static_cast<int64_t>(paths.size()));
    if (!trace.empty()) paths.push_back(trace);
  }
  const auto load = [](const std::string& path, const LoadProgress& progress) {
    Result<Model> model = importer::load_trace(path, {.progress = progress});
    if (!model.ok()) tell_failure(model.error(), false);
    return model;
  };
  serve::Api api(std::make_shared<TraceSet>(paths, load, serve::prepare, TraceSet::Options{.when_asked = true}),
                 FIRELANE_VERSION);
  api.serve_job(std::move(served));
  return serve_until_stopped(api, options);
}

}  // namespace firelane::cli

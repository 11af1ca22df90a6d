#include "cli/open.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <utility>

#include "base/visible_text.h"
#include "import/load.h"

namespace firelane::cli {

namespace {

// One line on stderr, redrawn in place, gone when the load is over. update() may be
// called from any loading thread.
class ProgressBar {
 public:
  explicit ProgressBar(const std::string& path) : name_(shorten_middle(visible_text(path), 40)) {}
  ~ProgressBar() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
  }

  void update(uint64_t done_bytes, uint64_t total_bytes) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (total_bytes == 0 || now < next_draw_) return;
    next_draw_ = now + std::chrono::milliseconds(100);
    drawn_ = true;
    constexpr size_t kWidth = 30;
    const double part = std::min(1.0, static_cast<double>(done_bytes) / static_cast<double>(total_bytes));
    const auto filled = static_cast<size_t>(part * static_cast<double>(kWidth));
    const std::string bar = std::string(filled, '=') + std::string(kWidth - filled, ' ');
    fmt::print(stderr, "\rloading {} [{}] {:3.0f}%\x1b[K", name_, bar, part * 100);
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string name_;
  std::mutex mutex_;
  Clock::time_point next_draw_ = Clock::now() + std::chrono::seconds(1);
  bool drawn_ = false;
};

void warn_of_losses(const std::string& path, const LossCounts& losses) {
  for (size_t i = 0; i < kStatCount; ++i) {
    const StatInfo& stat = kStats[i];
    if (losses.counts[i] == 0 || stat.severity != Severity::kDataLoss) continue;
    fmt::print(stderr, "firelane: warning: {}: {} ({}: {}); {}\n", visible_text(path), stat.meaning, stat.name,
               losses.counts[i], stat.remedy);
  }
}

Result<Model> load_and_warn(const std::string& path, const JoinedPaths& joined) {
  importer::LoadOptions options{.execution_trace = joined.execution_trace, .snapshot = joined.snapshot};
  Result<Model> model = [&] {
    ProgressBar bar(path);
    if (::isatty(STDERR_FILENO) == 1) {
      options.progress = [&bar](uint64_t done, uint64_t total) { bar.update(done, total); };
    }
    return importer::load_trace(path, options);
  }();
  if (model.ok()) warn_of_losses(path, model.value().losses);
  return model;
}

}  // namespace

void add_trace_argument(Flags& flags, std::string& path) {
  flags.add("FILE", path, "the trace: .lane, .json (.gz, .zst), another tool's (docs/formats), or - for standard input")
      .required()
      .value_name("");
}

Error join_needs_one_trace() {
  return {"--execution-trace and --snapshot are joined to one trace: name only that one"};
}

void add_joined_options(Flags& flags, JoinedPaths& joined) {
  flags
      .add("--execution-trace", joined.execution_trace,
           "the execution trace of the same run (ExecutionTraceObserver): which operator needs whose data")
      .value_name("FILE");
  flags
      .add("--snapshot", joined.snapshot,
           "a memory snapshot of the same process (torch.cuda.memory._dump_snapshot), on the trace's time axis")
      .value_name("FILE");
}

Result<std::shared_ptr<const TraceSet>> open_traces(std::vector<std::string> paths, const JoinedPaths& joined) {
  const auto load = [joined](const std::string& path, const LoadProgress&) { return load_and_warn(path, joined); };
  const auto traces = std::make_shared<TraceSet>(std::move(paths), load);
  traces->wait_until_loaded();
  for (size_t id = 0; id < traces->size(); ++id) {
    if (traces->trace(id) == nullptr) return Error{traces->status(id).error};
  }
  return std::shared_ptr<const TraceSet>(traces);
}

Result<std::shared_ptr<const StudiedTrace>> open_trace(const std::string& path, const JoinedPaths& joined) {
  FL_TRY(const auto traces, open_traces({path}, joined));
  return traces->trace(0);
}

}  // namespace firelane::cli

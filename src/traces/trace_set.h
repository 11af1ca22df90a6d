// The traces that are looked at together: one or many. Commands, pages and Python take a set.
//
//   TraceSet traces({"a.json.gz", "b.lane"}, load);   // one after another, on a thread of its own
//   traces.wait_until_loaded();
//   if (const auto trace = traces.trace(0)) ...
//
// In a job of many ranks, traces are loaded on request, and only the latest few are kept:
//
//   TraceSet traces(paths, load, {}, {.when_asked = true});
//   traces.ask_for(3);
//
// All of it may be called by any number of threads at once, but for wait_until_loaded().
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane {

using LoadProgress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

class TraceSet {
 public:
  // How a path becomes a model; import/load.h has one.
  using Loader = std::function<Result<Model>(const std::string& path, const LoadProgress& progress)>;
  // What is computed of each trace before it counts as loaded.
  using Prepare = std::function<void(const StudiedTrace& trace)>;

  enum class State : uint8_t { kLoading, kReady, kFailed, kUnloaded };
  struct Status {
    State state = State::kLoading;
    uint64_t bytes_done = 0;
    uint64_t bytes_total = 0;
    std::string error;  // of a trace that failed
  };

  struct Options {
    bool when_asked = false;  // load a trace by ask_for(); else all of them, one after another
    size_t most_loaded = 4;   // of those that were asked for: the one asked for longest ago makes room
  };

  TraceSet(std::vector<std::string> paths, Loader load, Prepare prepare = {});
  TraceSet(std::vector<std::string> paths, Loader load, Prepare prepare, const Options& options);
  // One that is there already.
  explicit TraceSet(std::shared_ptr<const StudiedTrace> trace);
  // Waits for the trace that is being loaded; those after it are left.
  ~TraceSet();
  TraceSet(const TraceSet&) = delete;
  TraceSet& operator=(const TraceSet&) = delete;

  size_t size() const { return slots_.size(); }
  const std::string& path(size_t id) const { return slots_[id]->path; }
  Status status(size_t id) const;
  // Has it loaded, unless it is or all are. Returns at once.
  void ask_for(size_t id) const;
  // nullptr while it is not ready, or could not be loaded, or when there is none of that number.
  std::shared_ptr<const StudiedTrace> trace(size_t id) const;

  // REQUIRES: not loaded when asked for.
  void wait_until_loaded();
  // Until trace `id` is loaded, or could not be; not longer than `most`.
  void wait_for(size_t id, std::chrono::milliseconds most) const;

 private:
  struct Slot {
    std::string path;
    std::atomic<State> state{State::kLoading};
    std::atomic<uint64_t> bytes_done{0};
    std::atomic<uint64_t> bytes_total{0};
    std::string error;                          // set before kFailed
    std::shared_ptr<const StudiedTrace> trace;  // set before kReady
  };

  void load_all(const Loader& load, const Prepare& prepare);
  void load_wanted(const Loader& load, const Prepare& prepare);
  void load_one(Slot& slot, const Loader& load, const Prepare& prepare);
  void make_room();
  void set_state(Slot& slot, State state);

  std::vector<std::unique_ptr<Slot>> slots_;
  Options options_;
  std::atomic<bool> stop_{false};
  mutable std::vector<size_t> wanted_;  // asked for, latest last; guarded by state_mutex_
  mutable std::mutex state_mutex_;      // of a change of a slot's state and trace
  mutable std::condition_variable state_changed_;
  std::thread loading_;
};

}  // namespace firelane

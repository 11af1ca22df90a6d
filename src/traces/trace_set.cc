#include "traces/trace_set.h"

#include <new>
#include <utility>

namespace firelane {

TraceSet::TraceSet(std::vector<std::string> paths, Loader load, Prepare prepare)
    : TraceSet(std::move(paths), std::move(load), std::move(prepare), Options{}) {}

TraceSet::TraceSet(std::vector<std::string> paths, Loader load, Prepare prepare, const Options& options)
    : options_(options) {
  for (std::string& path : paths) {
    Slot& slot = *slots_.emplace_back(std::make_unique<Slot>());
    slot.path = std::move(path);
    if (options.when_asked) slot.state = State::kUnloaded;
  }
  loading_ = std::thread([this, load = std::move(load), prepare = std::move(prepare)] {
    if (options_.when_asked) {
      load_wanted(load, prepare);
    } else {
      load_all(load, prepare);
    }
  });
}

TraceSet::TraceSet(std::shared_ptr<const StudiedTrace> trace) {
  Slot& slot = *slots_.emplace_back(std::make_unique<Slot>());
  slot.path = trace->model().info.path;
  slot.trace = std::move(trace);
  slot.state = State::kReady;
}

TraceSet::~TraceSet() {
  {
    const std::lock_guard lock(state_mutex_);
    stop_ = true;
  }
  state_changed_.notify_all();
  wait_until_loaded();
}

void TraceSet::wait_until_loaded() {
  if (loading_.joinable()) loading_.join();
}

TraceSet::Status TraceSet::status(size_t id) const {
  const Slot& slot = *slots_[id];
  Status status{.state = slot.state, .bytes_done = slot.bytes_done, .bytes_total = slot.bytes_total};
  if (status.state == State::kFailed) status.error = slot.error;
  return status;
}

std::shared_ptr<const StudiedTrace> TraceSet::trace(size_t id) const {
  if (id >= slots_.size()) return nullptr;
  const std::lock_guard lock(state_mutex_);
  return slots_[id]->state == State::kReady ? slots_[id]->trace : nullptr;
}

void TraceSet::ask_for(size_t id) const {
  if (!options_.when_asked || id >= slots_.size()) return;
  {
    const std::lock_guard lock(state_mutex_);
    std::erase(wanted_, id);
    wanted_.push_back(id);
    if (slots_[id]->state == State::kUnloaded) slots_[id]->state = State::kLoading;
  }
  state_changed_.notify_all();
}

void TraceSet::load_all(const Loader& load, const Prepare& prepare) {
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (stop_) return;
    load_one(*slot, load, prepare);
  }
}

// The one asked for last first: it is what somebody looks at now.
void TraceSet::load_wanted(const Loader& load, const Prepare& prepare) {
  for (;;) {
    Slot* next = nullptr;
    {
      std::unique_lock lock(state_mutex_);
      const auto find = [&] {
        for (auto id = wanted_.rbegin(); id != wanted_.rend() && next == nullptr; ++id) {
          if (slots_[*id]->state == State::kLoading) next = slots_[*id].get();
        }
        return next != nullptr;
      };
      state_changed_.wait(lock, [&] { return stop_ || find(); });
      if (stop_) return;
      make_room();
    }
    load_one(*next, load, prepare);
  }
}

// REQUIRES: state_mutex_ is held.
void TraceSet::make_room() {
  size_t loaded = 0;
  for (auto id = wanted_.rbegin(); id != wanted_.rend(); ++id) {
    Slot& slot = *slots_[*id];
    if (slot.state != State::kReady || ++loaded < options_.most_loaded) continue;
    slot.state = State::kUnloaded;
    slot.trace = nullptr;
  }
}

void TraceSet::load_one(Slot& slot, const Loader& load, const Prepare& prepare) {
  std::shared_ptr<const StudiedTrace> trace;
  const Result<void> loaded = [&]() -> Result<void> {
    try {
      FL_TRY(Model model, load(slot.path, [&](uint64_t done, uint64_t total) {
               slot.bytes_done = done;
               slot.bytes_total = total;
             }));
      trace = std::make_shared<const StudiedTrace>(std::move(model));
      if (prepare) prepare(*trace);
      return {};
    } catch (const std::bad_alloc&) {
      return Error{slot.path + ": not enough memory"};
    }
  }();
  if (!loaded.ok()) slot.error = loaded.error().message;
  if (loaded.ok()) {
    const std::lock_guard lock(state_mutex_);
    slot.trace = std::move(trace);
  }
  set_state(slot, loaded.ok() ? State::kReady : State::kFailed);
}

void TraceSet::set_state(Slot& slot, State state) {
  {
    const std::lock_guard lock(state_mutex_);
    slot.state = state;
  }
  state_changed_.notify_all();
}

void TraceSet::wait_for(size_t id, std::chrono::milliseconds most) const {
  std::unique_lock lock(state_mutex_);
  state_changed_.wait_for(lock, most, [&] { return slots_[id]->state != State::kLoading; });
}

}  // namespace firelane

#include "traces/trace_set.h"

#include <new>
#include <utility>

namespace firelane {

TraceSet::TraceSet(std::vector<std::string> paths, Loader load, Prepare prepare) {
  for (std::string& path : paths) slots_.emplace_back(std::make_unique<Slot>())->path = std::move(path);
  loading_ = std::thread([this, load = std::move(load), prepare = std::move(prepare)] { load_all(load, prepare); });
}

TraceSet::TraceSet(std::shared_ptr<const StudiedTrace> trace) {
  Slot& slot = *slots_.emplace_back(std::make_unique<Slot>());
  slot.path = trace->model().info.path;
  slot.trace = std::move(trace);
  slot.state = State::kReady;
}

TraceSet::~TraceSet() {
  stop_ = true;
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
  return id < slots_.size() && slots_[id]->state == State::kReady ? slots_[id]->trace : nullptr;
}

void TraceSet::load_all(const Loader& load, const Prepare& prepare) {
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (stop_) return;
    const Result<void> loaded = [&]() -> Result<void> {
      try {
        FL_TRY(Model model, load(slot->path, [&](uint64_t done, uint64_t total) {
                 slot->bytes_done = done;
                 slot->bytes_total = total;
               }));
        slot->trace = std::make_shared<const StudiedTrace>(std::move(model));
        if (prepare) prepare(*slot->trace);
        return {};
      } catch (const std::bad_alloc&) {
        return Error{slot->path + ": not enough memory"};
      }
    }();
    if (!loaded.ok()) slot->error = loaded.error().message;
    set_state(*slot, loaded.ok() ? State::kReady : State::kFailed);
  }
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

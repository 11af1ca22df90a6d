#include "record/torch/late_start.h"

#include <ATen/record_function.h>
#include <pthread.h>

#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

namespace firelane::torch_hooks {
namespace {

using Begin = std::function<void()>;
std::atomic<Begin*> g_waiting{nullptr};
std::atomic<bool (*)() noexcept> g_is_ready{nullptr};
std::atomic<int> g_running{0};  // threads that may have taken it
at::CallbackHandle g_handle = at::INVALID_CALLBACK_HANDLE;
std::atomic<bool> g_late_on{false};

void switch_off() noexcept {
  if (g_late_on.exchange(false)) at::disableCallback(g_handle);
}

std::unique_ptr<at::ObserverContext> on_late_begin(const at::RecordFunction&) {
  bool (*is_ready)() noexcept = g_is_ready.load(std::memory_order_acquire);
  if (is_ready == nullptr || !is_ready()) return nullptr;
  g_running.fetch_add(1);
  if (const std::unique_ptr<Begin> begin(g_waiting.exchange(nullptr)); begin != nullptr) {
    g_is_ready = nullptr;
    try {
      (*begin)();
    } catch (const std::exception&) {
    }
    switch_off();
  }
  g_running.fetch_sub(1);
  return nullptr;
}

// What waits is the parent's, and a thread that was beginning it is not here.
void in_child() {
  g_is_ready = nullptr;
  g_waiting = nullptr;
  g_running = 0;
}

}  // namespace

void begin_when(bool (*is_ready)() noexcept, std::function<void()> begin) {
  static const int registered = ::pthread_atfork(nullptr, nullptr, in_child);
  static_cast<void>(registered);
  forget_late_start();
  g_waiting = new Begin(std::move(begin));
  g_is_ready.store(is_ready, std::memory_order_release);
  // clearGlobalCallbacks() removes ours, too: then it is added again.
  if (g_handle == at::INVALID_CALLBACK_HANDLE || !at::hasGlobalCallbacks()) {
    g_handle = at::addGlobalCallback(at::RecordFunctionCallback(on_late_begin));
  } else {
    at::reenableCallback(g_handle);
  }
  g_late_on = true;
}

void forget_late_start() noexcept {
  g_is_ready = nullptr;
  delete g_waiting.exchange(nullptr);
  while (g_running.load() > 0) std::this_thread::yield();
  switch_off();
}

}  // namespace firelane::torch_hooks

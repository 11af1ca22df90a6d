#include "record/cupti/call_hook.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>

#include "record/core/thread_buffer.h"
#include "record/cupti/calls.h"

namespace firelane::cupti {
namespace {

// Names by id, and never freed: a callback may come late, and buffers know a text by its address.
std::array<const char*, kRuntimeIdLimit> g_runtime_names{};
std::array<const char*, kDriverIdLimit> g_driver_names{};

// Counts the times that callbacks were turned on, so that a call whose end was not seen does not count as open later.
std::atomic<uint32_t> g_round{0};

struct OpenCalls {
  uint64_t start_ticks = 0;
  uint32_t round = 0;
  uint32_t depth = 0;
};
constinit thread_local OpenCalls t_open __attribute__((tls_model("initial-exec")));

template <size_t N>
void remember_name(const CuptiApi& api, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                   std::array<const char*, N>& names) {
  const char* name = nullptr;
  if (names[id] != nullptr || api.callback_name(domain, id, &name) != CUPTI_SUCCESS) return;
  names[id] = ::strdup(std::string(plain_call_name(name)).c_str());
}

const char* name_of(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) return id < g_runtime_names.size() ? g_runtime_names[id] : nullptr;
  return id < g_driver_names.size() ? g_driver_names[id] : nullptr;
}

}  // namespace

bool CallHook::start(CUptiResult& result) noexcept {
  if (subscriber_ != nullptr) return true;
  try {
    const CallIds ids = wanted_calls(api_);
    for (const CUpti_CallbackId id : ids.runtime) remember_name(api_, CUPTI_CB_DOMAIN_RUNTIME_API, id, g_runtime_names);
    for (const CUpti_CallbackId id : ids.driver) remember_name(api_, CUPTI_CB_DOMAIN_DRIVER_API, id, g_driver_names);
    CUpti_SubscriberHandle subscriber = nullptr;
    result = api_.subscribe(&subscriber, on_call, nullptr);
    if (result != CUPTI_SUCCESS) return false;
    subscriber_ = subscriber;
    g_round.fetch_add(1, std::memory_order_relaxed);
    for (const CUpti_CallbackId id : ids.runtime) {
      result = api_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, id);
      if (result != CUPTI_SUCCESS) return stop(), false;
    }
    for (const CUpti_CallbackId id : ids.driver) {
      result = api_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
      if (result != CUPTI_SUCCESS) return stop(), false;
    }
    return true;
  } catch (const std::exception&) {
    result = CUPTI_ERROR_OUT_OF_MEMORY;
    return stop(), false;
  }
}

void CallHook::stop() noexcept {
  if (subscriber_ == nullptr) return;
  api_.unsubscribe(subscriber_);  // turns its callbacks off
  subscriber_ = nullptr;
}

void CallHook::on_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* call) {
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API && domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  const auto* data = static_cast<const CUpti_CallbackData*>(call);
  OpenCalls& open = t_open;
  const uint32_t round = g_round.load(std::memory_order_relaxed);
  if (open.round != round) open = {.round = round};
  if (data->callbackSite == CUPTI_API_ENTER) {
    if (open.depth++ == 0) open.start_ticks = now_ticks();
    return;
  }
  if (open.depth == 0) return;  // began before we listened
  --open.depth;
  if (open.depth > 0) return;  // inside another
  const char* name = name_of(domain, id);
  record::ThreadBuffer* b = name != nullptr ? record::recording_thread() : nullptr;
  if (b == nullptr) return;
  b->slice(open.start_ticks, now_ticks(), b->stable_name(name),
           domain == CUPTI_CB_DOMAIN_RUNTIME_API ? format::Scope::kRuntime : format::Scope::kDriver);
  b->attribute(format::Attribute::kCorrelation, int64_t{data->correlationId});
}

}  // namespace firelane::cupti

#include "record/cupti/detach.h"

#include <pthread.h>

#include <atomic>

namespace firelane::cupti {
namespace {

// From here on CUPTI can be detached from a process and attached again (CUDA 12.6).
constexpr uint32_t kOldestDetachable = 24;

std::atomic<bool> g_stays{false};

struct Leaving {
  const CuptiApi* api = nullptr;
  pthread_t thread{};
  bool done = false;
};

void on_call(void* data, CUpti_CallbackDomain, CUpti_CallbackId, const void* call) {
  auto* leaving = static_cast<Leaving*>(data);
  if (static_cast<const CUpti_CallbackData*>(call)->callbackSite != CUPTI_API_EXIT) return;
  if (::pthread_equal(leaving->thread, ::pthread_self()) == 0 || leaving->done) return;
  leaving->done = leaving->api->finalize() == CUPTI_SUCCESS;
}

}  // namespace

void keep_cupti_attached(bool keep) noexcept { g_stays.store(keep); }

bool detach_cupti(const CuptiApi& api) noexcept {
  if (g_stays.load()) return false;
  uint32_t version = 0;
  if (api.finalize == nullptr || api.driver_call == nullptr) return false;
  if (api.get_version(&version) != CUPTI_SUCCESS || version < kOldestDetachable) return false;
  Leaving leaving{.api = &api, .thread = ::pthread_self()};
  CUpti_SubscriberHandle subscriber = nullptr;
  if (api.subscribe(&subscriber, on_call, &leaving) != CUPTI_SUCCESS) return false;
  constexpr CUpti_CallbackId kCall = CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion;
  int driver_version = 0;
  if (api.enable_callback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, kCall) == CUPTI_SUCCESS) {
    api.driver_call(&driver_version);
  }
  if (!leaving.done) api.unsubscribe(subscriber);
  return leaving.done;
}

}  // namespace firelane::cupti

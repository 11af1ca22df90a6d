// CUPTI's functions as a table, found at run time. Everything else in this room calls through it, so that tests can put
// their own functions in (record/cupti/testing.h).
#pragma once

#include <cupti.h>

#include <optional>
#include <string>

namespace firelane::cupti {

struct CuptiApi {
  CUptiResult (*get_version)(uint32_t* version) = nullptr;
  CUptiResult (*get_timestamp)(uint64_t* ns) = nullptr;
  CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc) = nullptr;
  CUptiResult (*enable)(CUpti_ActivityKind) = nullptr;
  CUptiResult (*disable)(CUpti_ActivityKind) = nullptr;
  CUptiResult (*flush_all)(uint32_t flag) = nullptr;
  CUptiResult (*next_record)(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record) = nullptr;
  CUptiResult (*dropped_records)(CUcontext, uint32_t stream, size_t* dropped) = nullptr;
  CUptiResult (*callback_name)(CUpti_CallbackDomain, uint32_t id, const char** name) = nullptr;
  CUptiResult (*result_string)(CUptiResult, const char** text) = nullptr;
  CUptiResult (*get_thread_id_type)(CUpti_ActivityThreadIdType*) = nullptr;
  CUptiResult (*set_thread_id_type)(CUpti_ActivityThreadIdType) = nullptr;
  // Since CUDA 12.5; null before.
  CUptiResult (*enable_runtime_call)(CUpti_CallbackId, uint8_t on) = nullptr;
  CUptiResult (*enable_driver_call)(CUpti_CallbackId, uint8_t on) = nullptr;
  CUptiResult (*finalize)() = nullptr;
  // cuDriverGetVersion, a driver call without side effects; null if there is no driver.
  CUresult (*driver_call)(int* version) = nullptr;
  // Callbacks around calls; one subscriber at a time in a process.
  CUptiResult (*subscribe)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void* data) = nullptr;
  CUptiResult (*unsubscribe)(CUpti_SubscriberHandle) = nullptr;
  CUptiResult (*enable_callback)(uint32_t on, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) = nullptr;
};

// The library that load_cupti() takes, or null.
void* open_cupti() noexcept;

// The library that the process already uses (torch brings its own), else FIRELANE_CUPTI, the CUDA toolkit's, the
// system's. None is a normal answer: `reason` then says what to do.
std::optional<CuptiApi> load_cupti(std::string& reason) noexcept;

// "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: ..." and what to do about it.
std::string explain(const CuptiApi& api, CUptiResult result);

}  // namespace firelane::cupti

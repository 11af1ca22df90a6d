// A CUPTI without a GPU: the same table of functions over records that a test writes.
//
//   FakeCupti fake;
//   fake.feed({bytes_of(kernel), bytes_of(call)});      // one buffer with two records
//   fake.api()                                          // what DeviceActivity::start wants
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "record/cupti/api.h"

namespace firelane::cupti::test {

using Bytes = std::vector<uint8_t>;

template <typename Record>
Bytes bytes_of(const Record& record) {
  Bytes bytes(sizeof(Record));
  std::memcpy(bytes.data(), &record, sizeof(Record));
  return bytes;
}

// One at a time: CUPTI's functions have no argument that could name the instance.
class FakeCupti {
 public:
  FakeCupti() { current() = this; }
  ~FakeCupti() { current() = nullptr; }
  FakeCupti(const FakeCupti&) = delete;
  FakeCupti& operator=(const FakeCupti&) = delete;

  CuptiApi api() const {
    return {.get_version = [](uint32_t* v) { return *v = current()->version, CUPTI_SUCCESS; },
            .get_timestamp = [](uint64_t* ns) { return *ns = current()->now_ns += 1000, CUPTI_SUCCESS; },
            .register_callbacks =
                [](CUpti_BuffersCallbackRequestFunc on_request, CUpti_BuffersCallbackCompleteFunc on_complete) {
                  current()->request = on_request;
                  current()->complete = on_complete;
                  return CUPTI_SUCCESS;
                },
            .enable =
                [](CUpti_ActivityKind kind) {
                  if (kind == current()->refused_kind) return current()->refusal;
                  current()->kinds.insert(kind);
                  current()->set_calls(kind, true);
                  return CUPTI_SUCCESS;
                },
            .disable =
                [](CUpti_ActivityKind kind) {
                  current()->kinds.erase(kind);
                  current()->set_calls(kind, false);
                  current()->held.clear();  // as CUPTI does
                  return CUPTI_SUCCESS;
                },
            .flush_all =
                [](uint32_t flag) {
                  current()->forced_flushes += flag != 0;
                  for (const auto& records : std::exchange(current()->held, {})) current()->feed(records);
                  return CUPTI_SUCCESS;
                },
            .next_record = next_record,
            .dropped_records = [](CUcontext, uint32_t,
                                  size_t* n) { return *n = current()->dropped.exchange(0), CUPTI_SUCCESS; },
            .callback_name =
                [](CUpti_CallbackDomain domain, uint32_t id, const char** name) {
                  const auto& names =
                      domain == CUPTI_CB_DOMAIN_DRIVER_API ? current()->driver_calls : current()->runtime_calls;
                  const auto found = names.find(id);
                  if (found == names.end()) return CUPTI_ERROR_INVALID_PARAMETER;
                  *name = found->second;
                  return CUPTI_SUCCESS;
                },
            .result_string = [](CUptiResult, const char** text) { return *text = "CUPTI_ERROR_FAKE", CUPTI_SUCCESS; },
            .get_thread_id_type =
                [](CUpti_ActivityThreadIdType* type) { return *type = current()->thread_id_type, CUPTI_SUCCESS; },
            .set_thread_id_type =
                [](CUpti_ActivityThreadIdType type) { return current()->thread_id_type = type, CUPTI_SUCCESS; },
            .enable_runtime_call = [](CUpti_CallbackId id, uint8_t on) { return set(current()->runtime, id, on); },
            .enable_driver_call = [](CUpti_CallbackId id, uint8_t on) { return set(current()->driver, id, on); },
            .finalize =
                [] {
                  ++current()->finalized;
                  current()->finalized_inside_a_call &= current()->is_inside_a_call;
                  current()->on_call = nullptr;
                  return CUPTI_SUCCESS;
                },
            .driver_call =
                [](int* version) {
                  current()->is_inside_a_call = true;
                  current()->call_through(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion, 99,
                                          [] {});
                  current()->is_inside_a_call = false;
                  *version = 13000;
                  return CUDA_SUCCESS;
                },
            .subscribe =
                [](CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function, void* data) {
                  if (current()->has_other_subscriber) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
                  current()->on_call = function;
                  current()->call_data = data;
                  *handle = reinterpret_cast<CUpti_SubscriberHandle>(current());
                  return CUPTI_SUCCESS;
                },
            .unsubscribe =
                [](CUpti_SubscriberHandle) {
                  current()->on_call = nullptr;
                  current()->runtime_callbacks.clear();
                  current()->driver_callbacks.clear();
                  return CUPTI_SUCCESS;
                },
            .enable_callback =
                [](uint32_t on, CUpti_SubscriberHandle, CUpti_CallbackDomain domain, CUpti_CallbackId id) {
                  auto& ids =
                      domain == CUPTI_CB_DOMAIN_DRIVER_API ? current()->driver_callbacks : current()->runtime_callbacks;
                  return set(ids, id, static_cast<uint8_t>(on));
                }};
  }

  // A call's callbacks as CUPTI makes them, on the calling thread. `inside`: what happens between them.
  void callback(CUpti_CallbackDomain domain, uint32_t id, uint32_t correlation, CUpti_ApiCallbackSite site) {
    const auto& ids = domain == CUPTI_CB_DOMAIN_DRIVER_API ? driver_callbacks : runtime_callbacks;
    if (on_call == nullptr || !ids.contains(id)) return;
    CUpti_CallbackData data{};
    data.callbackSite = site;
    data.correlationId = correlation;
    on_call(call_data, domain, id, &data);
  }
  template <typename Inside>
  void call_through(CUpti_CallbackDomain domain, uint32_t id, uint32_t correlation, Inside&& inside) {
    callback(domain, id, correlation, CUPTI_API_ENTER);
    inside();
    callback(domain, id, correlation, CUPTI_API_EXIT);
  }

  // One full buffer. `cut` bytes of its end are not valid.
  void feed(const std::vector<Bytes>& records, size_t cut = 0) {
    uint8_t* buffer = nullptr;
    size_t bytes = 0;
    size_t max_records = 0;
    request(&buffer, &bytes, &max_records);
    if (buffer == nullptr) return;
    size_t used = 0;
    std::vector<size_t> begins;
    for (const Bytes& record : records) {
      begins.push_back(used);
      std::memcpy(buffer + used, record.data(), record.size());
      used += (record.size() + 7) / 8 * 8;
    }
    {
      const std::lock_guard lock(mutex);
      offsets[buffer] = begins;
    }
    complete(nullptr, 0, buffer, bytes, used - cut);
  }
  // CUPTI asks for a buffer ahead of its need, and keeps it.
  uint8_t* keep_buffer() {
    uint8_t* buffer = nullptr;
    size_t bytes = 0;
    size_t max_records = 0;
    request(&buffer, &bytes, &max_records);
    return buffer;
  }
  // What the next flush brings.
  void hold(const std::vector<Bytes>& records) { held.push_back(records); }

  bool is_quiet() const { return kinds.empty() && runtime.empty() && driver.empty() && on_call == nullptr; }

  uint32_t version = 130001;
  uint64_t now_ns = 1'000'000;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_ActivityKind refused_kind = CUPTI_ACTIVITY_KIND_INVALID;
  CUptiResult refusal = CUPTI_SUCCESS;
  CUpti_ActivityThreadIdType thread_id_type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  std::set<CUpti_ActivityKind> kinds;
  std::set<CUpti_CallbackId> runtime, driver;
  std::map<uint32_t, const char*> runtime_calls = {
      {3, "cudaGetDevice_v3020"}, {211, "cudaLaunchKernel_v7000"}, {31, "cudaMemcpy_v3020"}};
  std::map<uint32_t, const char*> driver_calls = {{307, "cuLaunchKernel"}, {5, "cuCtxGetCurrent"}};
  CUpti_CallbackFunc on_call = nullptr;
  void* call_data = nullptr;
  std::set<CUpti_CallbackId> runtime_callbacks, driver_callbacks;
  bool has_other_subscriber = false;
  std::atomic<size_t> dropped = 0;
  int forced_flushes = 0;
  int finalized = 0;
  bool finalized_inside_a_call = true;

 private:
  static FakeCupti*& current() {
    static FakeCupti* fake = nullptr;
    return fake;
  }
  // As in CUPTI, a kind is all of its calls or none.
  void set_calls(CUpti_ActivityKind kind, bool on) {
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) set_all(runtime, runtime_calls, on);
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER) set_all(driver, driver_calls, on);
  }
  static void set_all(std::set<CUpti_CallbackId>& ids, const std::map<uint32_t, const char*>& names, bool on) {
    ids.clear();
    for (const auto& [id, name] : names) {
      if (on) ids.insert(id);
    }
  }
  static CUptiResult set(std::set<CUpti_CallbackId>& ids, CUpti_CallbackId id, uint8_t on) {
    if (on != 0) {
      ids.insert(id);
    } else {
      ids.erase(id);
    }
    return CUPTI_SUCCESS;
  }
  static CUptiResult next_record(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record) {
    const std::lock_guard lock(current()->mutex);
    const std::vector<size_t>& begins = current()->offsets[buffer];
    size_t next = 0;
    if (*record != nullptr) {
      const auto at = static_cast<size_t>(reinterpret_cast<uint8_t*>(*record) - buffer);
      while (next < begins.size() && begins[next] <= at) ++next;
    }
    if (next >= begins.size() || begins[next] >= valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(buffer + begins[next]);
    return CUPTI_SUCCESS;
  }

  bool is_inside_a_call = false;
  std::mutex mutex;  // the drain reads while a test feeds
  std::map<uint8_t*, std::vector<size_t>> offsets;
  std::vector<std::vector<Bytes>> held;
};

inline Bytes kernel(uint64_t start, uint64_t end, uint32_t correlation, const char* name = "gemm") {
  CUpti_ActivityKernel9 k{};
  k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  k.start = start;
  k.end = end;
  k.correlationId = correlation;
  k.streamId = 7;
  k.contextId = 1;
  k.name = name;
  k.gridX = 132;
  k.gridY = k.gridZ = 1;
  k.blockX = 256;
  k.blockY = k.blockZ = 1;
  k.registersPerThread = 32;
  k.staticSharedMemory = 1024;
  return bytes_of(k);
}

inline Bytes call(CUpti_ActivityKind kind, uint32_t id, uint64_t start, uint64_t end, uint32_t correlation,
                  uint32_t thread_id = 42) {
  CUpti_ActivityAPI c{};
  c.kind = kind;
  c.cbid = id;
  c.start = start;
  c.end = end;
  c.correlationId = correlation;
  c.threadId = thread_id;
  return bytes_of(c);
}

}  // namespace firelane::cupti::test

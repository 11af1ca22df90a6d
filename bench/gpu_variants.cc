// What each way of asking CUPTI costs a program: bench/gpu_variants.py builds this as a library, turns one way on,
// times, turns it off. Nothing of the recorder is in it; records are counted and thrown away.
//
//   begin("concurrent copies callbacks")  -> 0, or CUPTI's error of the first thing it refused
//   end()                                 -> everything off again; counts() says what came
#include <cupti.h>
#include <dlfcn.h>
#include <x86intrin.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

#define FUNCTIONS(X)                \
  X(cuptiActivityRegisterCallbacks) \
  X(cuptiActivityEnable)            \
  X(cuptiActivityDisable)           \
  X(cuptiActivityEnableContext)     \
  X(cuptiActivityDisableContext)    \
  X(cuptiActivityGetAttribute)      \
  X(cuptiActivityFlushAll)          \
  X(cuptiActivityGetNextRecord)     \
  X(cuptiActivitySetAttribute)      \
  X(cuptiActivityEnableRuntimeApi)  \
  X(cuptiActivityEnableDriverApi)   \
  X(cuptiActivityEnableHWTrace)     \
  X(cuptiActivityFlushPeriod)       \
  X(cuptiGetCallbackName)           \
  X(cuptiGetTimestamp)              \
  X(cuptiSubscribe)                 \
  X(cuptiUnsubscribe)               \
  X(cuptiEnableCallback)            \
  X(cuptiFinalize)

struct Table {
#define DECLARE(name) decltype(&::name) name = nullptr;
  FUNCTIONS(DECLARE)
#undef DECLARE
} cupti;

bool load() {
  if (cupti.cuptiFinalize != nullptr) return true;
  void* library = ::dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) library = ::dlopen("libcupti.so.13", RTLD_LAZY);
  if (library == nullptr) library = ::dlopen("libcupti.so.12", RTLD_LAZY);
  if (library == nullptr) return false;
#define FIND(name) cupti.name = reinterpret_cast<decltype(&::name)>(::dlsym(library, #name));
  FUNCTIONS(FIND)
#undef FIND
  return cupti.cuptiFinalize != nullptr;
}

size_t g_buffer_bytes = 1 << 20;
bool g_zeroed = false;
std::mutex g_mutex;
std::vector<uint8_t*> g_free;
std::unordered_set<uint32_t> g_kernel_correlations;

// CUDA events of our own instead of records: one after so many launches, on the default stream.
struct OwnEvents {
  int every = 0;  // 0: none
  std::atomic<uint64_t> launches = 0;
  std::vector<CUevent> events;
  CUresult (*record)(CUevent, CUstream) = nullptr;

  void prepare() {
    void* cuda = ::dlopen("libcuda.so.1", RTLD_LAZY);
    if (cuda == nullptr || record != nullptr) return;
    record = reinterpret_cast<decltype(record)>(::dlsym(cuda, "cuEventRecord"));
    auto* make = reinterpret_cast<CUresult (*)(CUevent*, unsigned)>(::dlsym(cuda, "cuEventCreate"));
    events.resize(4096);
    for (CUevent& event : events) make(&event, 0);
  }
  void launched() {
    const uint64_t count = ++launches;
    if (count % static_cast<uint64_t>(every) == 0) record(events[count / every % events.size()], nullptr);
  }
} g_own_events;

CUcontext current_context() {
  CUcontext context = nullptr;
  if (void* cuda = ::dlopen("libcuda.so.1", RTLD_LAZY))
    reinterpret_cast<CUresult (*)(CUcontext*)>(::dlsym(cuda, "cuCtxGetCurrent"))(&context);
  return context;
}

std::atomic<uint64_t> g_kernels, g_calls, g_others, g_nested;

void request(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  const std::lock_guard lock(g_mutex);
  *max_records = 0;
  *bytes = g_buffer_bytes;
  if (!g_free.empty()) {
    *buffer = g_free.back();
    g_free.pop_back();
    return;
  }
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, g_buffer_bytes));
  std::memset(*buffer, 0, g_buffer_bytes);
}

void complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
      ++g_kernels;
      g_kernel_correlations.insert(reinterpret_cast<CUpti_ActivityKernel9*>(record)->correlationId);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME || record->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
      ++g_calls;
    } else {
      ++g_others;
    }
  }
  if (g_zeroed) std::memset(buffer, 0, valid);
  const std::lock_guard lock(g_mutex);
  g_free.push_back(buffer);
}

struct Kept {
  uint64_t start, end;
  uint32_t correlation, id;
};
constexpr size_t kRing = 1 << 16;
thread_local std::vector<Kept>* t_ring = nullptr;
thread_local uint64_t t_start = 0;
thread_local uint32_t t_depth = 0;
thread_local size_t t_next = 0;
std::vector<std::vector<Kept>*> g_rings;
bool g_empty_callback = false;

void on_call(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* call) {
  if (g_empty_callback) return;
  const auto* data = static_cast<const CUpti_CallbackData*>(call);
  if (data->callbackSite == CUPTI_API_ENTER) {
    if (t_depth++ == 0) t_start = __rdtsc();
    return;
  }
  if (t_depth == 0) return;
  if (--t_depth > 0) {
    g_nested.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (t_ring == nullptr) {
    t_ring = new std::vector<Kept>(kRing);
    const std::lock_guard lock(g_mutex);
    g_rings.push_back(t_ring);
  }
  if (g_own_events.every > 0) g_own_events.launched();
  (*t_ring)[t_next++ % kRing] = {t_start, __rdtsc(), data->correlationId, id};
}

bool is_launch(const std::string& name) {
  return name.find("LaunchKernel") != std::string::npos || name.find("GraphLaunch") != std::string::npos;
}
bool is_wanted(const std::string& name) {
  for (const char* part :
       {"Launch", "Memcpy", "Memset", "Synchronize", "WaitEvent", "EventRecord", "Malloc", "MemAlloc", "Free",
        "HostAlloc", "MemCreate", "MemMap", "MemUnmap", "MemRelease", "HostRegister"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

template <typename Use>
void each_call(CUpti_CallbackDomain domain, Use use) {
  for (uint32_t id = 1; id < 900; ++id) {
    const char* name = nullptr;
    if (cupti.cuptiGetCallbackName(domain, id, &name) == CUPTI_SUCCESS && name != nullptr) use(id, std::string(name));
  }
}

CUpti_SubscriberHandle g_subscriber = nullptr;
std::vector<CUpti_ActivityKind> g_kinds;
CUcontext g_context = nullptr;  // whose kernels alone are recorded

}  // namespace

extern "C" {

int begin(const char* ways) {
  if (!load()) return -1;
  const std::string text = std::string(" ") + ways + " ";
  const auto has = [&](const char* way) { return text.find(std::string(" ") + way + " ") != std::string::npos; };
  g_own_events.every = has("events1") ? 1 : has("events8") ? 8 : has("events32") ? 32 : 0;
  if (g_own_events.every > 0) g_own_events.prepare();
  g_kernels = g_calls = g_others = g_nested = 0;
  g_kernel_correlations.clear();
  for (auto* ring : g_rings) std::fill(ring->begin(), ring->end(), Kept{});
  const size_t bytes = has("big") ? 16 << 20 : 1 << 20;
  if (bytes != g_buffer_bytes) {
    for (uint8_t* buffer : g_free) std::free(buffer);
    g_free.clear();
  }
  g_buffer_bytes = bytes;
  g_zeroed = has("zeroed");
  g_empty_callback = has("empty");
  int refused = 0;
  const auto check = [&](CUptiResult result) {
    if (result != CUPTI_SUCCESS && refused == 0) refused = static_cast<int>(result);
  };
  if (has("subscribe") || has("callbacks") || has("launches") || has("runtime-callbacks") || has("driver-callbacks")) {
    check(cupti.cuptiSubscribe(&g_subscriber, on_call, nullptr));
    const auto enable = [&](CUpti_CallbackDomain domain) {
      each_call(domain, [&](uint32_t id, const std::string& name) {
        const bool on = has("launches") ? is_launch(name) : is_wanted(name);
        if (on) check(cupti.cuptiEnableCallback(1, g_subscriber, domain, id));
      });
    };
    if (!has("subscribe") && !has("driver-callbacks")) enable(CUPTI_CB_DOMAIN_RUNTIME_API);
    if (!has("subscribe") && !has("runtime-callbacks")) enable(CUPTI_CB_DOMAIN_DRIVER_API);
  }
  // Set every time: what one way asked for may outlive it.
  size_t one = 1;
  uint8_t zeroed = has("zeroed"), per_thread = !has("shared"), pinned = has("pinned");
  cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &one, &zeroed);
  cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &one, &per_thread);
  cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &one, &pinned);
  cupti.cuptiActivityFlushPeriod(has("period") ? 100 : 0);
  static size_t usual_bytes = 0;
  size_t size = sizeof usual_bytes;
  if (usual_bytes == 0) cupti.cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &usual_bytes);
  size_t device_bytes = has("device64") ? 64 << 20 : usual_bytes;
  cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &device_bytes);
  if (has("hardware")) check(cupti.cuptiActivityEnableHWTrace(1));
  check(cupti.cuptiActivityRegisterCallbacks(request, complete));
  const auto kind = [&](CUpti_ActivityKind k) {
    check(cupti.cuptiActivityEnable(k));
    g_kinds.push_back(k);
  };
  if (has("context")) {
    g_context = current_context();
    check(cupti.cuptiActivityEnableContext(g_context, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  }
  if (has("concurrent")) kind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (has("kernel")) kind(CUPTI_ACTIVITY_KIND_KERNEL);
  if (has("copies")) kind(CUPTI_ACTIVITY_KIND_MEMCPY), kind(CUPTI_ACTIVITY_KIND_MEMSET);
  if (has("overhead")) kind(CUPTI_ACTIVITY_KIND_OVERHEAD);
  if (has("sync")) kind(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  if (has("runtime")) kind(CUPTI_ACTIVITY_KIND_RUNTIME);
  if (has("driver")) kind(CUPTI_ACTIVITY_KIND_DRIVER);
  for (const bool driver : {false, true}) {
    const CUpti_CallbackDomain domain = driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    auto* set = driver ? cupti.cuptiActivityEnableDriverApi : cupti.cuptiActivityEnableRuntimeApi;
    each_call(domain, [&](uint32_t id, const std::string& name) {
      if (has("some-off") && has(driver ? "driver" : "runtime") && !is_wanted(name)) set(id, 0);
      if (has("some-on") && is_launch(name)) check(set(id, 1));
    });
  }
  return refused;
}

void end() {
  cupti.cuptiActivityFlushAll(0);
  for (const CUpti_ActivityKind kind : g_kinds) cupti.cuptiActivityDisable(kind);
  if (g_context != nullptr) cupti.cuptiActivityDisableContext(g_context, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  g_context = nullptr;
  g_kinds.clear();
  if (g_subscriber != nullptr) cupti.cuptiUnsubscribe(g_subscriber);
  g_subscriber = nullptr;
  cupti.cuptiActivityFlushAll(0);
}

int leave() { return load() ? static_cast<int>(cupti.cuptiFinalize()) : -1; }

// kernels, records of calls, other records, callbacks inside of another, calls kept, kernels whose call was kept
void counts(uint64_t* out) {
  std::unordered_set<uint32_t> kept;
  uint64_t calls = 0;
  for (const auto* ring : g_rings) {
    for (const Kept& k : *ring) {
      if (k.end == 0) continue;
      ++calls;
      kept.insert(k.correlation);
    }
  }
  uint64_t linked = 0;
  for (const uint32_t correlation : g_kernel_correlations) linked += kept.count(correlation);
  const uint64_t values[] = {g_kernels, g_calls, g_others, g_nested, calls, linked};
  std::memcpy(out, values, sizeof values);
}

// ns a reading: the processor's counter, the system's clock, CUPTI's
void clock_costs(double* out) {
  if (!load()) return;
  constexpr int kReadings = 20'000;
  const auto now = [] {
    timespec t;
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
  };
  volatile uint64_t sink = 0;
  uint64_t stamp = 0;
  double begin = now();
  for (int i = 0; i < kReadings; ++i) sink = __rdtsc();
  out[0] = (now() - begin) / kReadings;
  begin = now();
  for (int i = 0; i < kReadings; ++i) sink = static_cast<uint64_t>(now());
  out[1] = (now() - begin) / kReadings;
  begin = now();
  for (int i = 0; i < kReadings; ++i) cupti.cuptiGetTimestamp(&stamp);
  out[2] = (now() - begin) / kReadings;
  (void)sink;
}
}

#include "record/cupti/decode.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "record/cupti/calls.h"

namespace firelane::cupti {
namespace {

// Reads as much of a record as we use, from memory that CUPTI aligned for it: an older library's records are shorter,
// but the fields that we read stand at the same places since CUDA 12.0.
#define FIRELANE_BYTES_TO(type, field) (offsetof(type, field) + sizeof(type::field))

template <typename T>
const T* as(const CUpti_Activity* record, size_t room, size_t needed) {
  return room >= needed ? reinterpret_cast<const T*>(record) : nullptr;
}

int64_t number(uint64_t value) { return static_cast<int64_t>(value); }

// What copies within a device, to the host and between devices have in common.
template <typename Copy>
format::DeviceCopyRow copy_row(const Copy& c) {
  return {.start_ns = number(c.start),
          .duration_ns = number(c.end - c.start),
          .device = c.deviceId,
          .context = c.contextId,
          .stream = c.streamId,
          .correlation = c.correlationId,
          .bytes = number(c.bytes),
          .direction = c.copyKind,
          .source_memory = c.srcKind,
          .target_memory = c.dstKind,
          .graph_id = c.graphId,
          .graph_node_id = number(c.graphNodeId)};
}

// Records of events and of waits for them got their last field, cudaEventSyncId, with CUDA 12.8. Behind an older
// library's record the next one begins, and older headers do not know the field.
constexpr uint32_t kEventSyncVersion = 26;
#if CUPTI_API_VERSION >= 26
using SyncWithEvent = CUpti_ActivitySynchronization2;
using EventWithSync = CUpti_ActivityCudaEvent2;
template <typename T>
int64_t event_sync(const CUpti_Activity* record, size_t room) {
  const T* newer = as<T>(record, room, FIRELANE_BYTES_TO(T, cudaEventSyncId));
  return newer != nullptr ? number(newer->cudaEventSyncId) : 0;
}
#else
struct SyncWithEvent {};
struct EventWithSync {};
template <typename T>
int64_t event_sync(const CUpti_Activity*, size_t) {
  return 0;
}
#endif

}  // namespace

ActivityDecoder::ActivityDecoder(const CuptiApi& api) : api_(api) {
  uint32_t version = 0;
  has_event_sync_ =
      api_.get_version != nullptr && api_.get_version(&version) == CUPTI_SUCCESS && version >= kEventSyncVersion;
}

void ActivityDecoder::decode(const BufferQueue::Full& buffer, uint64_t from_ns, record::DeviceSink& sink) {
  CUpti_Activity* at = nullptr;
  const uint8_t* end = buffer.data + buffer.valid_bytes;
  while (true) {
    const CUptiResult result = api_.next_record(buffer.data, buffer.valid_bytes, &at);
    if (result == CUPTI_ERROR_MAX_LIMIT_REACHED) break;
    const auto* bytes = reinterpret_cast<const uint8_t*>(at);
    if (result != CUPTI_SUCCESS || bytes < buffer.data || bytes + sizeof(CUpti_ActivityKind) > end) {
      ++broken_;
      break;
    }
    record({.activity = at, .room = static_cast<size_t>(end - bytes), .from_ns = from_ns, .sink = sink});
    sink.checkpoint();
  }
}

// Work that was still running when the buffer was asked for has no end: it is counted, not kept.
bool ActivityDecoder::is_timed(uint64_t start, uint64_t end, uint64_t from_ns) {
  if (start == 0 || end < start) {
    ++untimed_;
    return false;
  }
  return end >= from_ns;
}

const ActivityDecoder::CallName& ActivityDecoder::call_name(bool driver, CUpti_CallbackId id,
                                                            record::DeviceSink& sink) {
  const auto [at, added] = call_names_.try_emplace(uint64_t{driver} << 32 | id);
  if (added) {
    const char* name = nullptr;
    api_.callback_name(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, id, &name);
    const std::string_view plain = name != nullptr ? plain_call_name(name) : driver ? "cu(unknown)" : "cuda(unknown)";
    at->second = {.text = sink.text(plain), .wanted = is_wanted_call(plain)};
  }
  return at->second;
}

uint32_t ActivityDecoder::kernel_name(const char* name, record::DeviceSink& sink) {
  key_.assign(name != nullptr ? name : "(unnamed kernel)");
  const auto [at, added] = kernel_names_.try_emplace(key_, 0);
  if (added) at->second = sink.text(key_);
  return at->second;
}

// A kind that another tool enabled is not ours. A record that was cut off is not kept.
void ActivityDecoder::record(const Record& r) {
  bool is_whole = true;
  switch (r.activity->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: is_whole = kernel(r); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: is_whole = copy(r); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: is_whole = peer_copy(r); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: is_whole = set(r); break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: is_whole = sync(r); break;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: is_whole = event(r); break;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: is_whole = call(r); break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: is_whole = overhead(r); break;
    default: break;
  }
  if (!is_whole) ++broken_;
}

bool ActivityDecoder::kernel(const Record& r) {
  using Kernel = CUpti_ActivityKernel9;
  const auto* k = as<Kernel>(r.activity, r.room, FIRELANE_BYTES_TO(Kernel, graphId));
  if (k == nullptr) return false;
  if (!is_timed(k->start, k->end, r.from_ns)) return true;
  r.sink.rows().add(format::DeviceKernelRow{.start_ns = number(k->start),
                                            .duration_ns = number(k->end - k->start),
                                            .device = k->deviceId,
                                            .context = k->contextId,
                                            .stream = k->streamId,
                                            .correlation = k->correlationId,
                                            .name = kernel_name(k->name, r.sink),
                                            .grid_x = k->gridX,
                                            .grid_y = k->gridY,
                                            .grid_z = k->gridZ,
                                            .block_x = k->blockX,
                                            .block_y = k->blockY,
                                            .block_z = k->blockZ,
                                            .registers = k->registersPerThread,
                                            .static_shared_bytes = k->staticSharedMemory,
                                            .dynamic_shared_bytes = k->dynamicSharedMemory,
                                            .graph_id = k->graphId,
                                            .graph_node_id = number(k->graphNodeId)});
  return true;
}

bool ActivityDecoder::copy(const Record& r) {
  using Copy = CUpti_ActivityMemcpy5;
  const auto* c = as<Copy>(r.activity, r.room, FIRELANE_BYTES_TO(Copy, graphId));
  if (c == nullptr) return false;
  if (is_timed(c->start, c->end, r.from_ns)) r.sink.rows().add(copy_row(*c));
  return true;
}

bool ActivityDecoder::peer_copy(const Record& r) {
  using Copy = CUpti_ActivityMemcpyPtoP4;
  const auto* c = as<Copy>(r.activity, r.room, FIRELANE_BYTES_TO(Copy, graphId));
  if (c == nullptr) return false;
  if (!is_timed(c->start, c->end, r.from_ns)) return true;
  format::DeviceCopyRow row = copy_row(*c);
  row.source_device = c->srcDeviceId;
  row.target_device = c->dstDeviceId;
  r.sink.rows().add(row);
  return true;
}

bool ActivityDecoder::set(const Record& r) {
  using Set = CUpti_ActivityMemset4;
  const auto* s = as<Set>(r.activity, r.room, FIRELANE_BYTES_TO(Set, graphId));
  if (s == nullptr) return false;
  if (!is_timed(s->start, s->end, r.from_ns)) return true;
  r.sink.rows().add(format::DeviceSetRow{.start_ns = number(s->start),
                                         .duration_ns = number(s->end - s->start),
                                         .device = s->deviceId,
                                         .context = s->contextId,
                                         .stream = s->streamId,
                                         .correlation = s->correlationId,
                                         .bytes = number(s->bytes),
                                         .memory = s->memoryKind,
                                         .graph_id = s->graphId,
                                         .graph_node_id = number(s->graphNodeId)});
  return true;
}

bool ActivityDecoder::sync(const Record& r) {
  using Sync = CUpti_ActivitySynchronization;
  const auto* s = as<Sync>(r.activity, r.room, FIRELANE_BYTES_TO(Sync, cudaEventId));
  if (s == nullptr) return false;
  if (!is_timed(s->start, s->end, r.from_ns)) return true;
  const bool whole = s->streamId == static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
  r.sink.rows().add(
      format::DeviceSyncRow{.start_ns = number(s->start),
                            .duration_ns = number(s->end - s->start),
                            .context = s->contextId,
                            .stream = whole ? -1 : number(s->streamId),
                            .correlation = s->correlationId,
                            .type = s->type,
                            .event = static_cast<int32_t>(s->cudaEventId),
                            .event_sync = has_event_sync_ ? event_sync<SyncWithEvent>(r.activity, r.room) : 0});
  return true;
}

bool ActivityDecoder::event(const Record& r) {
  using Event = CUpti_ActivityCudaEvent;
  const auto* e = as<Event>(r.activity, r.room, FIRELANE_BYTES_TO(Event, eventId));
  if (e == nullptr) return false;
  r.sink.rows().add(
      format::DeviceEventRow{.context = e->contextId,
                             .stream = e->streamId,
                             .correlation = e->correlationId,
                             .event = e->eventId,
                             .event_sync = has_event_sync_ ? event_sync<EventWithSync>(r.activity, r.room) : 0});
  return true;
}

bool ActivityDecoder::call(const Record& r) {
  const auto* c = as<CUpti_ActivityAPI>(r.activity, r.room, sizeof(CUpti_ActivityAPI));
  if (c == nullptr) return false;
  if (!is_timed(c->start, c->end, r.from_ns)) return true;
  const bool driver = c->kind == CUPTI_ACTIVITY_KIND_DRIVER;
  const CallName& name = call_name(driver, c->cbid, r.sink);
  if (!name.wanted) return true;
  r.sink.rows().add(format::DeviceCallRow{.start_ns = number(c->start),
                                          .duration_ns = number(c->end - c->start),
                                          .thread_id = c->threadId,
                                          .correlation = c->correlationId,
                                          .name = name.text,
                                          .is_driver = driver,
                                          .result = c->returnValue});
  return true;
}

bool ActivityDecoder::overhead(const Record& r) {
  using Overhead = CUpti_ActivityOverhead;
  const auto* o = as<Overhead>(r.activity, r.room, FIRELANE_BYTES_TO(Overhead, end));
  if (o == nullptr) return false;
  if (!is_timed(o->start, o->end, r.from_ns)) return true;
  r.sink.rows().add(format::DeviceOverheadRow{.start_ns = number(o->start),
                                              .duration_ns = number(o->end - o->start),
                                              .type = o->overheadKind,
                                              .thread_id = o->objectId.pt.threadId});
  return true;
}

}  // namespace firelane::cupti

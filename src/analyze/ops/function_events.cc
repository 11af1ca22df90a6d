#include "analyze/ops/function_events.h"

#include <algorithm>
#include <numeric>

#include "analyze/ops/ops_groups.h"
#include "analyze/ops/ops_stacks.h"

namespace firelane::analyze {

namespace {

struct Event {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  EventSide side = EventSide::kHost;
  Row row = kNoRow;
  OpsKey key = 0;
  uint32_t parent = kNoRow;
  uint32_t children = 0;
  Row backward = kNoRow;
  bool is_dropped = false;
  MemoryUse memory;
};

class EventCollector {
 public:
  EventCollector(const Model& model, PythonFunctions python)
      : model_(model),
        with_python_(python == PythonFunctions::kIncluded),
        groups_(model, false),
        memory_(model.memory_events) {}

  FunctionEvents run() {
    for (uint32_t lane = 0; lane < model_.lanes.size(); ++lane) add_lane(lane);
    drop_only_children_of_the_same_name();
    add_device();
    add_memory();
    return in_order();
  }

 private:
  void add_lane(uint32_t lane) {
    const HostSlices& host = model_.host_slices;
    const bool is_async = model_.lanes.kind[lane] == LaneKind::kAsync;
    memory_.restart();
    open_.clear();
    for (Row row = model_.lanes.host_begin[lane]; row < model_.lanes.host_end[lane]; ++row) {
      const bool is_event = is_function_event(host.kind[row]) || (with_python_ && is_python_function(model_, row));
      const OpsKey key = is_event ? groups_.key_of(host.name[row]) : kIgnoredKey;
      if (key == kIgnoredKey) continue;
      Event event{.start_ns = host.start_ns[row], .end_ns = host.end_ns(row), .row = row, .key = key};
      if (!memory_.empty()) event.memory = memory_.during(event.start_ns, event.end_ns);
      if (!is_async && !is_async_slice(model_, row)) nest(event);
      events_.push_back(event);
    }
  }

  void nest(Event& event) {
    const auto is_over = [&](const Event& open) { return event.start_ns >= open.end_ns || event.end_ns > open.end_ns; };
    while (!open_.empty() && is_over(events_[open_.back()])) open_.pop_back();
    if (!open_.empty()) {
      event.parent = open_.back();
      event.backward = events_[event.parent].backward;
      ++events_[event.parent].children;
    }
    if (is_backward_function(model_, event.row)) event.backward = event.row;
    open_.push_back(static_cast<uint32_t>(events_.size()));
  }

  // Parents stand before their children, so one pass sees each chain from its top.
  void drop_only_children_of_the_same_name() {
    for (Event& event : events_) {
      if (event.parent == kNoRow) continue;
      if (events_[event.parent].is_dropped) event.parent = events_[event.parent].parent;
      Event& parent = events_[event.parent];
      if (parent.key != event.key || parent.children != 1) continue;
      event.is_dropped = true;
      parent.children = event.children;
    }
  }

  void add_device() {
    const DeviceSlices& device = model_.device_slices;
    for (Row row = 0; row < device.size(); ++row) {
      if (!is_function_event(device.kind[row]) || groups_.key_of(device.name[row]) == kIgnoredKey) continue;
      events_.push_back(
          {.start_ns = device.start_ns[row], .end_ns = device.end_ns(row), .side = EventSide::kDevice, .row = row});
    }
  }

  void add_memory() {
    const MemoryEvents& memory = model_.memory_events;
    const auto add = [&](Row row) {
      events_.push_back({.start_ns = memory.time_ns[row],
                         .end_ns = memory.time_ns[row],
                         .side = EventSide::kMemory,
                         .row = row,
                         .memory = use_of(memory.device_type[row], memory.bytes[row])});
    };
    for (const Row row : memory_.unclaimed()) add(row);
    for (Row row = 0; row < memory.size(); ++row)
      if (memory.kind[row] == MemoryEventKind::kOutOfMemory) add(row);
  }

  FunctionEvents in_order() const {
    std::vector<uint32_t> order;
    for (uint32_t e = 0; e < events_.size(); ++e)
      if (!events_[e].is_dropped) order.push_back(e);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      if (events_[a].start_ns != events_[b].start_ns) return events_[a].start_ns < events_[b].start_ns;
      return events_[a].end_ns > events_[b].end_ns;
    });
    std::vector<uint32_t> place(events_.size(), kNoRow);
    for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;

    FunctionEvents result;
    result.child_begin.assign(order.size() + 1, 0);
    for (const uint32_t e : order) {
      const Event& event = events_[e];
      const uint32_t parent = event.parent == kNoRow ? kNoRow : place[event.parent];
      result.side.push_back(event.side);
      result.row.push_back(event.row);
      result.parent.push_back(parent);
      result.backward.push_back(event.backward);
      result.memory.push_back(event.memory);
      if (parent != kNoRow) ++result.child_begin[parent + 1];
    }
    std::partial_sum(result.child_begin.begin(), result.child_begin.end(), result.child_begin.begin());
    std::vector<uint32_t> next(result.child_begin.begin(), result.child_begin.end() - 1);
    result.child.resize(result.child_begin.back());
    for (uint32_t i = 0; i < result.size(); ++i)
      if (result.parent[i] != kNoRow) result.child[next[result.parent[i]]++] = i;
    return result;
  }

  const Model& model_;
  const bool with_python_;
  OpsGroups groups_;
  MemoryIndex memory_;
  std::vector<Event> events_;
  std::vector<uint32_t> open_;
};

}  // namespace

FunctionEvents function_events(const Model& model, PythonFunctions python) {
  return EventCollector(model, python).run();
}

}  // namespace firelane::analyze

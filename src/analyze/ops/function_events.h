// The list behind torch's events(): which slices are events, in which order, and who is whose parent.
//
//   const FunctionEvents events = function_events(model);
//   for (uint32_t e = 0; e < events.size(); ++e) ... events.row[e], events.parent[e] ...
//
// Events are the slices that ops() counts, in order of (start, longer first), with memory that
// no slice held as events of its own. An event that is the only child of one with its name is
// left out and its children move up, as in torch. Everything else stays in the model's columns.
// With kIncluded, Python functions are events, too: the parents of what they call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/ops/ops_memory.h"
#include "model/model.h"

namespace firelane::analyze {

enum class EventSide : uint8_t { kHost, kDevice, kMemory };

struct FunctionEvents {
  std::vector<EventSide> side;
  std::vector<Row> row;               // of host_slices, device_slices or memory_events
  std::vector<uint32_t> parent;       // an event, or kNoRow
  std::vector<uint32_t> backward;     // innermost backward function (host slice) around it, itself included
  std::vector<MemoryUse> memory;      // allocated less freed while it was open, children included
  std::vector<uint32_t> child_begin;  // size() + 1 numbers: children of e are child[child_begin[e] .. [e + 1]]
  std::vector<uint32_t> child;        // events, in order
  size_t size() const { return row.size(); }
};

enum class PythonFunctions : uint8_t { kLeftOut, kIncluded };

FunctionEvents function_events(const Model& model, PythonFunctions python = PythonFunctions::kLeftOut);

}  // namespace firelane::analyze

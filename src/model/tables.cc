#include "model/tables.h"

#include <algorithm>

#include "model/model.h"

namespace firelane {

FL_DEFINE_COLUMNS(Lanes, FL_LANES)
FL_DEFINE_COLUMNS(HostSlices, FL_HOST_SLICES)
FL_DEFINE_COLUMNS(OpDetails, FL_OP_DETAILS)
FL_DEFINE_COLUMNS(DataDependencies, FL_DATA_DEPENDENCIES)
FL_DEFINE_COLUMNS(CallDetails, FL_CALL_DETAILS)
FL_DEFINE_COLUMNS(DeviceSlices, FL_DEVICE_SLICES)
FL_DEFINE_COLUMNS(KernelDetails, FL_KERNEL_DETAILS)
FL_DEFINE_COLUMNS(CopyDetails, FL_COPY_DETAILS)
FL_DEFINE_COLUMNS(SyncDetails, FL_SYNC_DETAILS)
FL_DEFINE_COLUMNS(CommDetails, FL_COMM_DETAILS)
FL_DEFINE_COLUMNS(MemoryEvents, FL_MEMORY_EVENTS)
FL_DEFINE_COLUMNS(AllocatorEvents, FL_ALLOCATOR_EVENTS)
FL_DEFINE_COLUMNS(AllocatorSegments, FL_ALLOCATOR_SEGMENTS)
FL_DEFINE_COLUMNS(AllocatorBlocks, FL_ALLOCATOR_BLOCKS)
FL_DEFINE_COLUMNS(Instants, FL_INSTANTS)
FL_DEFINE_COLUMNS(StackSamples, FL_STACK_SAMPLES)
FL_DEFINE_COLUMNS(CounterTracks, FL_COUNTER_TRACKS)
FL_DEFINE_COLUMNS(CounterSamples, FL_COUNTER_SAMPLES)
FL_DEFINE_COLUMNS(Flows, FL_FLOWS)
FL_DEFINE_COLUMNS(Steps, FL_STEPS)
FL_DEFINE_COLUMNS(TimedSteps, FL_TIMED_STEPS)

const ColumnInfo* TableInfo::find(std::string_view column) const {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const ColumnInfo& c) { return c.name == column; });
  return found == columns.end() ? nullptr : &*found;
}

std::span<const TableInfo> model_tables() {
#define FL_HIDDEN(Table, name, meaning)
#define FL_INFO(Table, name, meaning)                                                       \
  TableInfo{#name, meaning, Table::columns(), [](const Model& m) { return m.name.size(); }, \
            [](const Model& m) -> const void* { return &m.name; }},
  static const TableInfo kTables[] = {FL_TABLES(FL_INFO, FL_HIDDEN)};
#undef FL_INFO
#undef FL_HIDDEN
  return kTables;
}

}  // namespace firelane

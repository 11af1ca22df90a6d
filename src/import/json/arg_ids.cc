// Which arg a key names. Keys of all ages of Kineto; the first letter decides most of it.
#include <cstring>

#include "import/json/event_rows.h"

namespace firelane::importer {

namespace {

template <size_t N>
bool is(const char* key, const char (&name)[N]) {
  return std::memcmp(key, name, N - 1) == 0 && key[N - 1] == '"';
}

}  // namespace

ArgId arg_id(const char* key) {
  switch (key[0]) {
    case 'A': return is(key, "Addr") ? ArgId::kMemoryAddress : ArgId::kUnknown;
    case 'B': return is(key, "Bytes") ? ArgId::kMemoryBytes : ArgId::kUnknown;
    case 'C':
      if (is(key, "Concrete Inputs")) return ArgId::kConcreteInputs;
      if (is(key, "Call stack")) return ArgId::kCallStack;
      if (is(key, "CallFrom")) return ArgId::kCallFrom;
      return is(key, "Collective name") ? ArgId::kCollective : ArgId::kUnknown;
    case 'D':
      if (is(key, "Device Type")) return ArgId::kMemoryDeviceType;
      if (is(key, "Device Id")) return ArgId::kMemoryDeviceId;
      if (is(key, "Data node")) return ArgId::kDataNode;
      if (is(key, "Data dependencies")) return ArgId::kDataDependencies;
      return is(key, "Dst Rank") ? ArgId::kDestinationRank : ArgId::kUnknown;
    case 'E': return is(key, "External id") ? ArgId::kExternalId : ArgId::kUnknown;
    case 'F': return is(key, "Fwd thread id") ? ArgId::kForwardThread : ArgId::kUnknown;
    case 'G':
      if (is(key, "Group size")) return ArgId::kGroupSize;
      if (is(key, "Global rank start")) return ArgId::kGlobalRankStart;
      return is(key, "Global rank stride") ? ArgId::kGlobalRankStride : ArgId::kUnknown;
    case 'I':
      if (is(key, "Input Dims") || is(key, "Input dims")) return ArgId::kInputDims;
      if (is(key, "Input type")) return ArgId::kInputTypes;
      if (is(key, "Input Strides")) return ArgId::kInputStrides;
      if (is(key, "In split size")) return ArgId::kInSplitSizes;
      return is(key, "In msg nelems") ? ArgId::kInElements : ArgId::kUnknown;
    case 'M': return is(key, "Module Hierarchy") ? ArgId::kModuleHierarchy : ArgId::kUnknown;
    case 'O':
      if (is(key, "Overload name")) return ArgId::kOverload;
      if (is(key, "Out split size")) return ArgId::kOutSplitSizes;
      return is(key, "Out msg nelems") ? ArgId::kOutElements : ArgId::kUnknown;
    case 'P':
      if (is(key, "Process Group Name")) return ArgId::kGroupName;
      if (is(key, "Process Group Description")) return ArgId::kGroupDescription;
      return is(key, "Process Group Ranks") ? ArgId::kGroupRanks : ArgId::kUnknown;
    case 'R':
      if (is(key, "Record function id")) return ArgId::kCallId;
      return is(key, "Rank") ? ArgId::kRank : ArgId::kUnknown;
    case 'S':
      if (is(key, "Sequence number")) return ArgId::kSequenceNumber;
      if (is(key, "Src Rank")) return ArgId::kSourceRank;
      if (is(key, "Stream Id")) return ArgId::kStream;
      if (is(key, "State")) return ArgId::kCommState;
      return is(key, "Seq") ? ArgId::kCommSequence : ArgId::kUnknown;
    case 'T':
      if (is(key, "Total Allocated")) return ArgId::kMemoryTotalAllocated;
      if (is(key, "Task Type")) return ArgId::kTaskType;
      return is(key, "Total Reserved") ? ArgId::kMemoryTotalReserved : ArgId::kUnknown;
    case 'b':
      if (is(key, "block")) return ArgId::kBlock;
      if (is(key, "blocks per SM")) return ArgId::kBlocksPerSm;
      if (is(key, "bandwidth(GB/s)")) return ArgId::kBandwidth;
      if (is(key, "bytes_accessed")) return ArgId::kBytesAccessed;
      return is(key, "bytes") ? ArgId::kBytes : ArgId::kUnknown;
    case 'c':
      if (is(key, "correlation") || is(key, "connection_id")) return ArgId::kCorrelation;
      return is(key, "context") ? ArgId::kContext : ArgId::kUnknown;
    case 'd':
      if (is(key, "device")) return ArgId::kDevice;
      if (is(key, "direction")) return ArgId::kDirection;
      return is(key, "dtype") ? ArgId::kDtype : ArgId::kUnknown;
    case 'e':
      if (is(key, "est. achieved occupancy %")) return ArgId::kOccupancy;
      return is(key, "external id") ? ArgId::kExternalId : ArgId::kUnknown;
    case 'f':
      if (is(key, "finished")) return ArgId::kFinished;
      if (is(key, "fromDevice")) return ArgId::kFromDevice;
      return is(key, "flops") ? ArgId::kFlops : ArgId::kUnknown;
    case 'g':
      if (is(key, "grid")) return ArgId::kGrid;
      if (is(key, "graph id")) return ArgId::kGraphId;
      return is(key, "graph node id") ? ArgId::kGraphNodeId : ArgId::kUnknown;
    case 'h':
      if (is(key, "hlo_op")) return ArgId::kHloOp;
      return is(key, "hlo_category") ? ArgId::kHloCategory : ArgId::kUnknown;
    case 'l':
      if (is(key, "level")) return ArgId::kLevel;
      return is(key, "labels") ? ArgId::kLabels : ArgId::kUnknown;
    case 'm': return is(key, "memory bandwidth (GB/s)") ? ArgId::kBandwidth : ArgId::kUnknown;
    case 'n': return is(key, "name") ? ArgId::kName : ArgId::kUnknown;
    case 'o': return is(key, "operation") ? ArgId::kDirection : ArgId::kUnknown;
    case 'p': return is(key, "program") ? ArgId::kProgram : ArgId::kUnknown;
    case 'r': return is(key, "registers per thread") ? ArgId::kRegisters : ArgId::kUnknown;
    case 's':
      if (is(key, "stream") || is(key, "stream_id")) return ArgId::kStream;
      if (is(key, "size") || is(key, "size(B)")) return ArgId::kBytes;
      if (is(key, "shared memory")) return ArgId::kSharedMemory;
      return is(key, "sort_index") ? ArgId::kSortIndex : ArgId::kUnknown;
    case 't':
      if (is(key, "toDevice")) return ArgId::kToDevice;
      return is(key, "theoretical occupancy %") ? ArgId::kOccupancy : ArgId::kUnknown;
    case 'w':
      if (is(key, "warps per SM")) return ArgId::kWarpsPerSm;
      if (is(key, "wait_on_stream")) return ArgId::kWaitOnStream;
      if (is(key, "wait_on_cuda_event_record_corr_id")) return ArgId::kWaitOnCorrelation;
      return is(key, "wait_on_cuda_event_id") ? ArgId::kWaitOnEvent : ArgId::kUnknown;
    default: return ArgId::kUnknown;
  }
}

}  // namespace firelane::importer

// Names of a plane: what its events and stats refer to by number.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/xplane/allocations.h"
#include "import/xplane/wire.h"
#include "model/raw.h"

namespace firelane::importer::xplane {

// Stats that something reads. All others are skipped.
enum class StatKey : uint8_t {
  kNone,
  kCorrelation,
  kKernelDetails,
  kMemcpyDetails,
  kMemsetDetails,
  kHloOp,
  kHloModule,
  kHloCategory,
  kProgram,
  kFlops,
  kBytes,
  kOpName,
  kStepNumber,
  kDeviceType,
  kVendor,
  kCores,
  kMemory,
  kMajor,
  kMinor,
  kProfileStart,
  kAllocator,
  kDeviceIndex,
  kInUse,
  kAllocationBytes,
  kAddress,
};

struct StatValue {
  StatKey key = StatKey::kNone;
  int64_t number = kNoNumber;
  double real = std::numeric_limits<double>::quiet_NaN();
  std::string_view text;
};

// What an event is on a thread of the host. Without a category: not asked for yet.
struct HostLook {
  HostKind kind = HostKind::kOther;
  StringId category{};
};
// By its name; `is_hlo`: XLA says that it runs an HLO op.
HostLook host_look(std::string_view name, bool is_hlo, RawPool& pool);

// What all events of one kind have in common.
struct EventName {
  StringId name{};  // of the op, short: "all-reduce.1"
  std::string_view long_name;
  StringId category{};  // of XLA
  StringId op_name{};
  StringId program{};
  int64_t flops = kNoNumber;
  int64_t bytes = kNoNumber;
  CopyDirection direction = CopyDirection::kUnknown;
  MemoryMark memory = MemoryMark::kNone;
  bool is_start = false;  // it only begins an asynchronous op, to which FLOPs and bytes belong
  // What it is on a line of ops and on one of asynchronous ops; a collective's name.
  DeviceKind kind = DeviceKind::kKernel;
  DeviceKind async_kind = DeviceKind::kKernel;
  StringId collective{};
  // Its row of kernel_details in the part that is being filled; kNoRow until the first such kernel.
  mutable Row kernel = kNoRow;
  // Its row of work_looks on the line that was numbered `look_line`; lines are counted from 1.
  mutable int32_t look = 0;
  mutable int32_t look_line = 0;
  mutable HostLook on_host;
  mutable HostLook on_host_as_op;
};

class Names {
 public:
  explicit Names(RawPool& pool) : pool_(pool) {}

  // Reads both maps of a plane.
  void read(std::string_view plane, LossCounts& losses);

  // One stat, of an event, of a kind of event or of a plane.
  StatValue stat(std::string_view bytes, LossCounts& losses) const;
  // Null when the plane does not have it.
  const EventName* event(int64_t id) const;

 private:
  void read_event(std::string_view bytes, LossCounts& losses);

  RawPool& pool_;
  StatKey key(int64_t id) const;

  std::unordered_map<int64_t, StatKey> keys_;
  std::vector<StatKey> small_keys_;                      // of the first ids: found without hashing
  std::unordered_map<int64_t, std::string_view> texts_;  // names of stats, which are values too (ref)
  std::unordered_map<int64_t, EventName> events_;
  std::vector<const EventName*> small_ids_;  // most ids are small: found without hashing
};

// "jit_train(123)" of a module's name; programs that only have a number are "program 123".
std::string_view without_suffix(std::string_view text, std::string_view suffix);

}  // namespace firelane::importer::xplane

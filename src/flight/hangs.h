// Why a distributed job hangs, from the flight recorders of its ranks.
//
// A collective ends when all members of its group have called it. A rank that waits is seen by its first entry that is
// not complete; whom it waits for are the members that have not called that collective. Followed from rank to rank this
// leads to those who hold up others and wait for nobody (their program does something else), or around in a circle
// (two groups' collectives are called in different order). Beside that, collectives that ranks call with different
// operations, sizes or types.
//
// Everything holds for the ranks whose dumps are there; a rank without one is named, and nothing is said about it.
// Groups are told apart by their members, purpose and order of creation, because names may differ between ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/flight_log.h"

namespace firelane::flight {

// One collective of one group, or one send or receive.
struct CollectiveId {
  std::string group;        // name on the first rank that has it
  std::string description;  // "default_pg"
  int64_t sequence = kNoNumber;
  std::string collective;  // "all_reduce", "send 0->1"
};

// Ranks that wait in a collective for others that have not called it.
struct Wait {
  CollectiveId in;
  std::vector<int64_t> waiting;  // have called it, and it has not ended
  std::vector<int64_t> missing;  // have not called it
  std::vector<int64_t> unknown;  // members without a dump
  std::string place;             // of the call, on the first of those that wait
  int64_t waiting_ns = 0;        // from the first call until the last event of any dump
};

// All members have called it, and it has not ended on some.
struct Stuck {
  CollectiveId in;
  std::vector<int64_t> open;       // not ended
  std::vector<int64_t> completed;  // ended
  std::string place;
  int64_t waiting_ns = 0;
};

// A rank that others wait for, directly or through others, and that waits for nobody whose dump is there.
struct Culprit {
  int64_t rank = kNoNumber;
  std::vector<int64_t> blocked;  // ranks that wait for it
  CollectiveId missing;          // the first that it has not called
  std::string place;             // of that call on another rank
  std::string last;              // what it called last: "broadcast #16 of default_pg at train.py(41): step"
  bool has_dump = true;
};

enum class MismatchKind : uint8_t { kOperation, kSizes, kTypes };
std::string_view name_of(MismatchKind kind);  // "operation", "sizes", "types"

// Ranks that call the same collective in different ways.
struct Mismatch {
  struct Variant {
    std::string text;            // what these ranks have
    std::vector<int64_t> ranks;  // in order
  };
  CollectiveId in;
  MismatchKind kind = MismatchKind::kOperation;
  std::vector<Variant> variants;  // most ranks first
};

struct HangReport {
  int64_t dumps = 0;
  int64_t entries = 0;
  int64_t groups = 0;
  int64_t matched = 0;                        // collectives that at least two ranks have
  int64_t world_size = kNoNumber;             // as the largest group says
  std::vector<int64_t> absent_ranks;          // members of groups without a dump
  std::vector<Culprit> culprits;              // who blocks most first
  std::vector<std::vector<int64_t>> circles;  // ranks that wait for each other
  std::vector<Wait> waits;                    // longest first
  std::vector<Stuck> stuck;                   // longest first
  std::vector<Mismatch> mismatches;           // in order of group and sequence
  bool hangs() const { return !waits.empty() || !stuck.empty(); }
};

// REQUIRES: each log has a rank, and no two the same.
HangReport find_hangs(std::span<const FlightLog> logs);

}  // namespace firelane::flight

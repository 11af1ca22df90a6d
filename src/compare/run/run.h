// What is kept of a run to compare it with others: a few kilobytes that hold every figure of a comparison, so that a
// trace can be forgotten once it is summarized, and a baseline can be a small file.
//
// Everything is per step, warm-up left out and recording undone. The parts follow the chain of dependencies that
// decides how long a step takes (analyze/graph/critical_path.h): what runs beside it takes no part, since making it
// slower changes nothing. They add up to the step exactly.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/memory/memory.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::compare {

enum class Part : uint8_t {
  // the host
  kInput,
  kBetweenOps,
  kOperators,
  kLaunching,
  kCalls,
  kWaiting,
  kAllocating,
  kGc,
  kLoading,
  kRecorder,
  // the device: kernels by what they compute
  kMatmul,
  kConvolution,
  kAttention,
  kPointwise,
  kReduction,
  kNormalization,
  kForeach,
  kIndexing,
  kRandom,
  kCompiled,
  kOtherKernels,
  kCommunication,
  kCopies,
  // neither works
  kLatency,
  kUnknown,
  kUneven,
};
inline constexpr size_t kPartCount = 26;
std::string_view name_of(Part part);     // "input", "host between operators", "matmul kernels"
std::string_view meaning_of(Part part);  // one line for people
bool is_kernels(Part part);
bool is_host(Part part);

using Parts = std::array<int64_t, kPartCount>;

// Work of one kind in one place: a kernel of an op with its shapes in a module. Without a device: an op.
struct WorkGroup {
  Part part = Part::kOtherKernels;
  std::string kernel;   // name of the kernel or copy; "" for ops
  std::string op;       // that launched it; "" none
  std::string module;   // innermost nn.Module, of the forward op in a backward; "" none
  std::string dims;     // of the op's inputs, JSON; "" not recorded
  std::string types;    // JSON
  std::string line;     // "train.py(31): step": the innermost function that is not torch's; "" not recorded
  double calls = 0;     // per step
  double total_ns = 0;  // per step, of the device; of ops: self time on the host
  double path_ns = 0;   // of it, on the chain that decides how long a step takes
};

// What the host did on that chain, by where.
struct HostPlace {
  Part part = Part::kBetweenOps;
  std::string op;  // "" outside of operators
  std::string line;
  double ns = 0;
};

struct SyncPlace {
  std::string reason;  // "item", "copy_to_host", ...
  std::string op;
  std::string line;
  double calls = 0;  // per step
  double ns = 0;
};

struct FindingMark {
  std::string id;
  std::string title;
  int64_t gain_ns = 0;
};

// FLOPs of one kind of arithmetic, as the kernels that did them were: "bf16", "tf32", "fp16 without tensor cores".
struct PrecisionUse {
  std::string precision;
  double flops = 0;             // per step
  double device_ns = 0;         // per step, of the kernels that did them
  double peak_flops_per_s = 0;  // of the device, for this arithmetic; 0 not known

  double flops_per_s() const { return device_ns > 0 ? flops * 1e9 / device_ns : 0; }
  double peak_percent() const { return peak_flops_per_s > 0 ? 100 * flops_per_s() / peak_flops_per_s : -1; }
};

struct Run {
  std::string path;
  std::string format;
  std::string model_name;  // type of the outermost module; "" not recorded
  // "torch", "gpu", "cuda_driver_version", ...: what the trace says of where it was made, sorted by name.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::pair<std::string, std::string>> recording;  // options of the recorder

  bool has_device_work = false;
  int64_t step_ns = 0;               // the usual step without recording: the run's number
  int64_t recorded_ns = 0;           // the same while recording
  bool recording_estimated = false;  // its cost was estimated, not measured
  std::string steps_by;              // "marked", "optimizer", "repetition", "whole trace"
  std::vector<int64_t> steps_ns;     // single steps, warm-up left out: the noise within the run
  Parts parts{};                     // add up to step_ns
  int64_t gpu_ns = 0;                // of all kernels and copies, each stream counts
  int64_t busy_ns = 0;               // some stream worked
  double launches = 0, kernels = 0, copies = 0, syncs = 0, ops = 0, allocator_calls = 0;
  int64_t input_wait_ns = 0;  // in the loader, also where it delays nothing
  bool has_memory = false;
  int64_t peak_bytes = 0;
  int64_t reserved_bytes = kNoNumber;
  std::array<int64_t, analyze::kMemoryCategoryCount> memory{};  // adds up to peak_bytes
  std::string memory_device;
  int64_t samples = 0;                   // per step, from the shapes of inputs; 0 not known
  std::string samples_are;               // "images", "sequences", "matrix rows": what was counted
  int64_t tokens = 0;                    // per step; 0 not known
  double flops = 0;                      // per step; 0 not known
  double mfu_percent = -1;               // time at the peak of the precision that each kernel used, of the step
  std::vector<PrecisionUse> precisions;  // most FLOPs first
  double energy_joules = -1;             // per step
  double mean_power_watts = -1;
  std::string limit;              // "overhead", "compute", ...
  std::string verdict;            // "overhead-bound: the host cannot feed ..."
  std::vector<WorkGroup> work;    // in order of first appearance
  std::vector<HostPlace> places;  // most time first
  std::vector<SyncPlace> sync_places;
  std::vector<FindingMark> findings;
  std::vector<std::pair<std::string, double>> numbers;  // that the user asked for: of SQL queries, by name
};

Run summarize(const StudiedTrace& trace);

}  // namespace firelane::compare

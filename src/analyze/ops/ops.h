// Time, memory and FLOPs per operator: what torch's key_averages() gives, from a Model.
//
//   const OpsResult result = ops(model, {.group_by_input_shape = true});
//   for (const OpsRow& row : result.rows) ...
//
// Every host slice that torch calls an event (ops, annotations, runtime and driver calls) and
// every piece of device work is put into one row per key, in the order in which the keys
// first appear. docs/ops.md defines each number and says where we differ from torch.
//
// Invariants: the self CPU times of the rows add up to self_cpu_time_total_ns; the self
// device times of device rows that are not annotations add up to self_device_time_total_ns,
// which is the sum of the durations of all kernels, memcpys and memsets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct OpsOptions {
  bool group_by_input_shape = false;
  bool group_by_overload = false;
  bool python_functions = false;  // rows of their own, and their self time is theirs
  uint32_t group_by_stack = 0;    // that many innermost Python frames are part of the key

  bool operator==(const OpsOptions&) const = default;
};

struct OpsRow {
  std::string name;  // "ProfilerStep#3" is named "ProfilerStep*"
  bool on_device = false;
  bool is_user_annotation = false;
  bool is_async = false;  // of the first event, as all below
  bool is_top_level = false;
  int64_t count = 0;
  int64_t self_cpu_time_total_ns = 0;
  int64_t cpu_time_total_ns = 0;
  int64_t self_device_time_total_ns = 0;
  int64_t device_time_total_ns = 0;
  int64_t cpu_memory_usage_bytes = 0;
  int64_t self_cpu_memory_usage_bytes = 0;
  int64_t device_memory_usage_bytes = 0;
  int64_t self_device_memory_usage_bytes = 0;
  int64_t flops = 0;               // as torch counts them: a few ops, each for itself
  int64_t flops_total = 0;         // every op we know, with what runs inside
  int64_t self_flops = 0;          // flops_total less that of the children: adds up over rows
  std::string overload;            // "Tensor" of aten::add.Tensor, when grouped by overload, else ""
  std::string input_shapes;        // "[[2, 3], []]" when grouped by shape, else ""
  std::vector<std::string> stack;  // innermost first, when grouped by stack

  double cpu_time_ns() const { return average(cpu_time_total_ns); }
  double device_time_ns() const { return average(device_time_total_ns); }

 private:
  double average(int64_t total) const {
    return count == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(count);
  }
};

struct OpsResult {
  std::vector<OpsRow> rows;
  std::string device_name;  // "cuda", "xpu", ...; "" when the trace knows of no device
  int64_t self_cpu_time_total_ns = 0;
  int64_t self_device_time_total_ns = 0;
  int64_t unattributed_device_time_ns = 0;  // of the above: work that no op launched (CUDA graphs, foreign kernels)
  int64_t overhead_time_ns = 0;             // the recorder's own slices; part of no row
  bool has_memory = false;                  // the trace was recorded with profile_memory
  bool has_flops = false;                   // the trace was recorded with with_flops, or gives FLOPs
  bool has_shapes = false;                  // some op has input shapes
};

OpsResult ops(const Model& model, const OpsOptions& options = {});

}  // namespace firelane::analyze

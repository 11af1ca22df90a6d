// Time, memory and FLOPs per nn.Module and per phase.
//
// A module's forward is its slices on the host and the device work of the ops in them; its backward is the work of the
// ops whose forward op (the trace's own links, else equal sequence numbers) ran inside the module. Rows include their
// submodules; self_* leaves these out. Every piece of device work has one innermost module at most, so self device
// times of all modules and without_module_device_ns add up to all device work.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analyze/steps/phases.h"
#include "analyze/verdict/bound.h"
#include "model/model.h"

namespace firelane::analyze {

struct ModuleRow {
  std::string name;    // "Linear_3", "model.layers.3.mlp"; its type when grouped by type
  std::string type;    // "Linear"
  std::string parent;  // name of the module around it; "" for the outermost
  int64_t depth = 0;   // 0 = outermost
  int64_t calls = 0;
  int64_t host_ns = 0;       // forward, on the host
  int64_t self_host_ns = 0;  // without its submodules
  int64_t forward_device_ns = 0;
  int64_t self_forward_device_ns = 0;
  int64_t backward_device_ns = 0;
  int64_t self_backward_device_ns = 0;
  int64_t backward_host_ns = 0;  // ops of the backward that name a forward op of the module, nested ones counted once
  int64_t forward_flops = 0;
  int64_t backward_flops = 0;
  int64_t allocated_bytes = 0;  // device memory allocated in the forward and still there when it ended; may be negative
  int64_t peak_bytes = 0;       // the most above what there was when it began, of any call
  int64_t kernels = 0;          // forward and backward
  int64_t waited_ns = 0;        // of host_ns: in calls that wait for the device
  int64_t compute_device_ns = 0;  // of the device work, limited by computing (analyze/verdict/bound.h)
  Limit limit = Limit::kUnknown;  // host time of forward and backward, waiting left out, against device time
};

struct PhaseRow {
  Phase phase = Phase::kNone;
  int64_t host_ns = 0;    // union over the slices of the phase, on all threads, that no other phase's slice interrupts
  int64_t device_ns = 0;  // sum of device work
  int64_t kernels = 0;
  int64_t flops = 0;
  int64_t allocated_bytes = 0;  // sum of device allocations
};

struct ModuleOptions {
  bool by_type = false;

  bool operator==(const ModuleOptions&) const = default;
};

struct ModuleTable {
  std::vector<ModuleRow> rows;  // in order of first call
  std::array<PhaseRow, kPhaseCount> phases;
  int64_t work_ns = 0;                      // all device work
  int64_t without_module_device_ns = 0;     // optimizer, data, loss, ...
  int64_t backward_without_forward_ns = 0;  // device work of the backward that names no forward op (of this trace)
  bool has_memory = false;
};

ModuleTable module_table(const Model& model, const ModuleOptions& options = {});

}  // namespace firelane::analyze

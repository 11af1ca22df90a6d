// What the hooks cost the program, measured in this process: real ops with the hook on and off, recorded
// into a session whose bytes are discarded. Part of every trace, so that analyses can subtract the recorder.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "record/torch/op_hook.h"

namespace firelane::torch_hooks {

struct CostRequest {
  OpDetail detail = OpDetail::kPlain;
  bool memory = false;
  // More kinds, measured by the caller while events are discarded: name and measurement. Each is called once.
  std::map<std::string, std::function<double()>> more;
};

// ns per event by kind: "op" or "op+inputs", "memory". About 3 ms the first time, then remembered.
// REQUIRES: no session records. Not thread-safe.
const std::map<std::string, double>& measure_costs(const CostRequest& request);
// What was measured so far.
std::map<std::string, double>& known_costs();

}  // namespace firelane::torch_hooks

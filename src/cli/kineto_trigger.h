// Traces a PyTorch program that runs under KINETO_USE_DAEMON=1, through firelane daemon: asks, and waits for the files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace firelane::cli {

struct KinetoProcess {
  int64_t pid = 0;
  int64_t own_pid = 0;  // in its container, if it runs in one; in the name of its file
  int64_t job = 0;
};
std::string describe(const KinetoProcess& process);  // "4711  python train.py"

Result<std::vector<KinetoProcess>> known_processes();

struct KinetoTrigger {
  std::string target;  // "trigger 4711" or "job 1234"
  std::string output = "trace.json";
  bool force = false;
  bool no_wait = false;
  int64_t duration_ms = 500;
  int64_t steps = 0;  // instead of a duration
  bool shapes = false;
  bool memory = false;
  bool stacks = false;
};

// What is asked of Kineto.
std::string kineto_config(const KinetoTrigger& trigger);
// run.json of process 77: run_77.json, as Kineto names it.
std::string trace_name(const std::string& output, int64_t own_pid);

// What was written, or, with no_wait, what will be.
Result<std::string> trace_by_daemon(KinetoTrigger trigger);

}  // namespace firelane::cli

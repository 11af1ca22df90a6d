// Runs a command as a child process and waits for it: what verbs share that run the user's program.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace firelane::cli {

struct ChildResult {
  int exit_code = 0;  // 128 + the signal's number when one ended it
  double wall_s = 0;
};

struct ChildOptions {
  std::string log;  // file that stdout and stderr go to; "": this process's own
};

// The program's exit code is part of the answer; an Error means that it could not be started.
Result<ChildResult> run_child(const std::vector<std::string>& command, const ChildOptions& options = {});

// This program, to be run again with another verb.
std::string own_program();

}  // namespace firelane::cli

// Runs a command as a child process and waits for it: what verbs share that run the user's program.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace firelane::cli {

struct ChildResult {
  int exit_code = 0;  // 128 + the signal's number when one ended it
  double wall_s = 0;
};

struct ChildOptions {
  std::string log;  // file that stdout and stderr go to; "": this process's own
  std::vector<std::pair<std::string, std::string>> environment;  // set for the child, beside this process's own
};

// The program's exit code is part of the answer; an Error means that it could not be started.
Result<ChildResult> run_child(const std::vector<std::string>& command, const ChildOptions& options = {});

// Why a program failed, from its output: "out of memory", or its exit code and the last line that it wrote.
std::string failure_of(const std::string& log, int exit_code);

// This program, to be run again with another verb.
std::string own_program();

}  // namespace firelane::cli

// firelane.toml: what a gate asks for.
//
//   [gate]
//   alpha = 0.05
//   store = ".firelane/baselines"
//   label = "main"
//
//   [gate.limits]
//   step_time = "3%"
//   peak_memory = "20 GiB"
//
//   [gate.sql.attention_ns]
//   query = "select sum(duration_ns) from kernels where name like '%flash%'"
//   limit = "5%"
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "compare/gate/gate.h"

namespace firelane::cli {

struct GateConfig {
  compare::GateOptions options;
  std::string store = ".firelane/baselines";
  std::string label = "main";
  std::vector<std::pair<std::string, std::string>> queries;  // name and SQL
};

// `path` "": firelane.toml of the working folder if there is one. An Error names the line or key that is wrong.
Result<GateConfig> read_gate_config(const std::string& path);

}  // namespace firelane::cli

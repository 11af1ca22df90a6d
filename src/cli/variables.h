// Variables of a program that `firelane sweep` and `firelane tune` set: --var batch=--batch-size:8,16,32,
// --var workers=env:WORKERS:0..8.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace firelane::cli {

struct Variable {
  std::string name;
  std::string flag;         // of the program's command line; "" none
  std::string environment;  // or a variable of its environment
  std::vector<std::string> values;
};

// Values are a list (8,16,32) or a range: 0..8, 0..64+8, 1..64*2.
Result<Variable> parse_variable(const std::string& text);
Result<std::vector<Variable>> parse_variables(const std::vector<std::string>& texts);

using Point = std::vector<std::string>;  // a value for each variable
// Every combination; the last variable changes first.
std::vector<Point> all_points(const std::vector<Variable>& variables);

// "batch=8, workers=2".
std::string name_of(const std::vector<Variable>& variables, const Point& point);

struct PointCommand {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment;
};
// The command with the point's values: in place of a flag's value that it has already, else at its end.
PointCommand command_at(const std::vector<std::string>& command, const std::vector<Variable>& variables,
                        const Point& point);

}  // namespace firelane::cli

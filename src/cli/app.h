// The whole command line as one CLI11 app: main parses with it, completion is generated
// from it, and so neither can know a flag that the other does not.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace firelane::cli {

struct CommandLine {
  std::unique_ptr<CLI::App> app;
  std::vector<VerbBody> bodies;  // one per verb, in the order of all_verbs()
};

CommandLine make_command_line();

// The arguments as the app wants them: `firelane FILE` becomes `firelane info FILE`.
std::vector<std::string> with_default_verb(std::vector<std::string> arguments);

}  // namespace firelane::cli

// firelane: parses the command line, runs one verb, turns its result into an exit code.
//
// Results go to stdout and talk to stderr. Whatever goes wrong ends as one line
// `firelane: ...` on stderr; no exception leaves main.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/visible_text.h"
#include "cli/app.h"
#include "cli/parts.h"

namespace firelane::cli {

int complain(const std::string& message, int exit_code) {
  std::fprintf(stderr, "firelane: %s\n", visible_text(message).c_str());
  return exit_code;
}

namespace {

// The verb that was being parsed when the usage went wrong, for "see firelane VERB --help".
std::string help_command(const CLI::App& app) {
  for (const CLI::App* sub : app.get_subcommands()) return "firelane " + sub->get_name() + " --help";
  return "firelane --help";
}

std::string usage_message(const CLI::App& app, const std::vector<std::string>& arguments,
                          const CLI::ParseError& error) {
  if (arguments.empty()) return "no verb and no file given; see firelane --help";
  if (app.get_subcommands().empty() && arguments[0][0] != '-') {
    return "'" + arguments[0] + "' is neither a verb nor a file; see firelane --help";
  }
  return std::string(error.what()) + "; see " + help_command(app);
}

int run(std::vector<std::string> arguments) {
  const auto asks_what_is_in = [](const std::string& word) { return word == "--parts" || word == "--version"; };
  if (std::ranges::all_of(arguments, asks_what_is_in) && std::ranges::count(arguments, "--parts") > 0) {
    std::fputs(parts_text().c_str(), stdout);
    return kExitOk;
  }
  const CommandLine line = make_command_line();
  CLI::App& app = *line.app;
  arguments = with_default_verb(std::move(arguments));
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the back
  } catch (const CLI::Success& wanted) {  // --help or --version: CLI11 prints it on stdout
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    return complain(usage_message(app, arguments, error), kExitUsage);
  }
  for (size_t i = 0; i < all_verbs().size(); ++i) {
    if (!app.got_subcommand(std::string(all_verbs()[i].name))) continue;
    const Result<int> result = line.bodies[i]();
    return result.ok() ? result.value() : complain(result.error().message, kExitFailed);
  }
  return complain("no verb given; see firelane --help", kExitUsage);
}

}  // namespace
}  // namespace firelane::cli

int main(int argc, char** argv) {
  using firelane::cli::complain;
  using firelane::cli::kExitFailed;
  try {
    return firelane::cli::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {
    return complain("not enough memory", kExitFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), kExitFailed);
  } catch (...) {
    return complain("unknown failure", kExitFailed);
  }
}

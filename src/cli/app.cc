#include "cli/app.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/recording.h"

namespace firelane::cli {

namespace {

bool is_verb(std::string_view text) {
  return std::any_of(all_verbs().begin(), all_verbs().end(), [&](const Verb& verb) { return verb.name == text; });
}

// A word that is neither a verb nor looks like a file is a verb misspelt.
bool looks_like_file(const std::string& text) {
  std::error_code error;
  return text == "-" || text.find_first_of("./") != std::string::npos || std::filesystem::exists(text, error);
}

// Spellings from before reports had the same parameters everywhere. They still work, but --help does not list them.
struct OldSpelling {
  std::string_view verb, flag, new_verb, new_flag;
};
constexpr std::array kOldSpellings = {
    OldSpelling{"kernels", "--roofline", "roofline", ""},
    OldSpelling{"ops", "--group-by-shape", "ops", "--group-by-input-shape"},
    OldSpelling{"ops", "--host", "ops", "--side=host"},
    OldSpelling{"ops", "--device", "ops", "--side=device"},
};

void respell(std::vector<std::string>& arguments) {
  for (const OldSpelling& old : kOldSpellings) {
    const auto found = std::find(arguments.begin() + 1, arguments.end(), old.flag);
    if (arguments[0] != old.verb || found == arguments.end()) continue;
    *found = old.new_flag;
    if (found->empty()) arguments.erase(found);
    arguments[0] = old.new_verb;
  }
}

}  // namespace

CommandLine make_command_line() {
  CommandLine line;
  line.app = std::make_unique<CLI::App>(
      "Firelane shows where a PyTorch program spends its time.\n\n"
      "firelane FILE is short for firelane info FILE. A FILE is a recording of firelane (.lane), a trace of\n"
      "torch.profiler (.json, .json.gz), any Chrome trace, a file of Nsight Systems, JAX or TPUs (XPlane),\n"
      "rocprofv3, Perfetto or speedscope, or a memory snapshot or execution trace of PyTorch.\n"
      "The FILE - is standard input.",
      "firelane");
  CLI::App& app = *line.app;
  app.set_version_flag("--version", "firelane " FIRELANE_VERSION, "print the version and exit");
  app.add_flag_function("--parts", [](int64_t) {}, "print what this installation has, and exit");
  app.set_help_flag("-h,--help", "print this help and exit");
  app.require_subcommand(1);
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.footer(
      "Exit codes: 0 done, 1 failed, 2 wrong usage; for gate also 3 a limit is exceeded, 4 inconclusive.\n"
      "Help on one verb: firelane VERB --help");
  for (const Verb& verb : all_verbs()) {
    CLI::App& sub = *app.add_subcommand(std::string(verb.name), std::string(verb.sentence));
    sub.group("Verbs")->footer("Examples:\n  " + std::string(verb.examples[0]) + "\n  " +
                               std::string(verb.examples[1]));
    Flags flags(sub);
    line.bodies.push_back(verb.setup(flags));
  }
  return line;
}

std::vector<std::string> with_default_verb(std::vector<std::string> arguments) {
  if (arguments.empty()) return arguments;
  respell(arguments);
  if (arguments[0] == "record" || arguments[0] == "attach") join_values(arguments);
  if (is_verb(arguments[0])) return arguments;
  const std::string& first = arguments[0];
  const bool is_flag = first.size() > 1 && first[0] == '-';
  const bool is_ours = first == "-h" || first == "--help" || first == "--version" || first == "--parts";
  if (is_ours || (!is_flag && !looks_like_file(first))) return arguments;
  arguments.insert(arguments.begin(), "info");
  return arguments;
}

}  // namespace firelane::cli

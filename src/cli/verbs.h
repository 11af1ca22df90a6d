// The verbs of the command line. Those that print a report are made from report/registry.h, where one is added; another
// is added like this:
//
//  1. Write src/cli/verb_NAME.cc (CMake finds it by that name) that defines
//         Verb NAME_verb() {
//           return {.name = "dump",
//                   .sentence = "Print the rows of the trace as they were read, one line each.",
//                   .examples = {"firelane dump trace.json.gz", "firelane dump trace.json.gz --rows 20 --json"},
//                   .setup = [](Flags& flags) -> VerbBody {
//                     auto args = std::make_shared<DumpArgs>();     // lives as long as the body
//                     add_trace_argument(flags, args->path);        // cli/open.h
//                     add_file_options(flags, args->output);        // cli/output.h
//                     flags.add("--rows", args->rows, "...");
//                     return [args] { return run_dump(*args); };
//                   }};
//         }
//  2. Declare it below and add it to all_verbs() in verbs.cc, where it stands in --help.
//  3. Give it a golden output in tests/cli and a section in docs/cli.md.
//
// A verb's run function reads as the list of its steps and starts with opening its output:
//
//   Result<int> run_dump(const DumpArgs& args) {
//     FL_TRY(Output output, Output::open(args.output));
//     FL_TRY(const auto trace, open_trace(args.path));
//     FL_TRY_VOID(report::dump(trace->model(), ...));
//     FL_TRY_VOID(output.close());
//     return kExitOk;
//   }
//
// It returns an exit code, or an Error that main prints as one line `firelane: ...` (exit 1).
// Wrong values are refused while parsing (Flag::one_of, Flag::between, ...), which is exit 2.
#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"

namespace firelane::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
// firelane gate: 3 a limit is broken, 4 that cannot be told (compare/gate/gate.h).

// Prints "firelane: message" on standard error and returns the code: for usage that only a verb's body can refuse.
int complain(const std::string& message, int exit_code);

using VerbBody = std::function<Result<int>()>;

struct Verb {
  std::string_view name;
  std::string_view sentence;                    // for --help: one sentence
  std::array<std::string_view, 2> examples;     // real commands
  std::function<VerbBody(Flags& flags)> setup;  // adds the flags; returns what runs after parsing
};

// In the order of --help.
const std::vector<Verb>& all_verbs();

Verb record_verb();
Verb view_verb();
Verb report_verb();
Verb explain_verb();
Verb verify_verb();
Verb why_verb();
Verb trigger_verb();
Verb daemon_verb();
Verb attach_verb();
Verb sample_verb();
Verb compare_verb();
Verb ranks_verb();
Verb gate_verb();
Verb baseline_verb();
Verb bench_verb();
Verb sweep_verb();
Verb tune_verb();
Verb hangs_verb();
Verb dump_verb();
Verb export_verb();
Verb convert_verb();
Verb sql_verb();
Verb completion_verb();
Verb build_recorder_verb();

}  // namespace firelane::cli

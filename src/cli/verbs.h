// The verbs of the command line, and how one is added:
//
//  1. Write src/cli/verb_NAME.cc (CMake finds it by that name) that defines
//         Verb NAME_verb() {
//           return {.name = "ops",
//                   .sentence = "Time per operator, as torch's key_averages().table().",
//                   .examples = {"firelane ops trace.json.gz", "firelane ops trace.json.gz --rows 20 --json"},
//                   .setup = [](Flags& flags) -> VerbBody {
//                     auto args = std::make_shared<OpsArgs>();      // lives as long as the body
//                     add_trace_argument(flags, args->path);          // cli/open.h
//                     add_report_options(flags, args->output);        // cli/output.h
//                     flags.add("--rows", args->rows, "...");
//                     return [args] { return run_ops(*args); };
//                   }};
//         }
//  2. Declare it below and add its line to all_verbs() in verbs.cc, where it stands in --help.
//  3. Give it a golden output in tests/cli and a section in docs/cli.md.
//
// A verb's run function reads as the list of its steps and starts with opening its output:
//
//   Result<int> run_ops(const OpsArgs& args) {
//     FL_TRY(Output output, Output::open(args.output));
//     FL_TRY(const Model model, open_trace(args.path));
//     FL_TRY_VOID(output.print(report::ops_report(ops(model, ...))));
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
inline constexpr int kExitCheckFailed = 3;  // a check the user asked for did not hold

using VerbBody = std::function<Result<int>()>;

struct Verb {
  std::string_view name;
  std::string_view sentence;                 // for --help: one sentence
  std::array<std::string_view, 2> examples;  // real commands
  VerbBody (*setup)(Flags& flags);           // adds the flags; returns what runs after parsing
};

// In the order of --help.
const std::vector<Verb>& all_verbs();

Verb record_verb();
Verb info_verb();
Verb diagnose_verb();
Verb view_verb();
Verb explain_verb();
Verb report_verb();
Verb breakdown_verb();
Verb idle_verb();
Verb launches_verb();
Verb syncs_verb();
Verb critical_path_verb();
Verb whatif_verb();
Verb ops_verb();
Verb kernels_verb();
Verb steps_verb();
Verb lanes_verb();
Verb fusion_verb();
Verb modules_verb();
Verb memory_verb();
Verb input_verb();
Verb inference_verb();
Verb cost_verb();
Verb dump_verb();
Verb export_verb();
Verb sql_verb();
Verb completion_verb();

}  // namespace firelane::cli

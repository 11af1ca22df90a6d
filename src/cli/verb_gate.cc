// firelane gate: does the new version keep its limits? For CI.
#include "base/shell_quoted.h"
#include "cli/gate_config.h"
#include "cli/output.h"
#include "cli/run_files.h"
#include "cli/verbs.h"
#include "compare/run/store.h"
#include "report/gate_report.h"

namespace firelane::cli {

namespace {

struct GateArgs {
  std::vector<std::string> files;
  std::vector<std::string> baseline;
  std::string config;
  std::string store;
  std::string label;
  std::vector<std::string> limits;
  std::string junit;
  OutputOptions output;
};

Result<std::vector<compare::Run>> open_baseline(const GateArgs& args, const GateConfig& config) {
  if (!args.baseline.empty()) return open_runs(args.baseline, config.queries);
  const std::string store = args.store.empty() ? config.store : args.store;
  const std::string label = args.label.empty() ? config.label : args.label;
  FL_TRY(std::vector<compare::StoredRun> stored, compare::read_store(store, label));
  if (stored.empty()) {
    return Error{store + ": no baseline '" + label + "'; make one with firelane baseline add --label " +
                 shell_quoted(label) + " FILE..., or name its traces with --baseline"};
  }
  std::vector<compare::Run> runs;
  for (compare::StoredRun& each : stored) runs.push_back(std::move(each.run));
  return runs;
}

Result<int> run_gate(const GateArgs& args) {
  FL_TRY(GateConfig config, read_gate_config(args.config));
  for (const std::string& text : args.limits) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return Error{"--limit " + text + ": write NAME=LIMIT, as step_time=3%"};
    config.options.limits.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const std::vector<compare::Run> baseline, open_baseline(args, config));
  FL_TRY(const std::vector<compare::Run> candidate, open_runs(args.files, config.queries));
  FL_TRY(const compare::GateResult result, compare::gate(baseline, candidate, config.options));
  // First: who reads the answer through `head` ends the program early.
  if (!args.junit.empty()) {
    FL_TRY(Output junit, Output::open({.path = args.junit, .force = true}));
    FL_TRY_VOID(junit.write(report::gate_junit(result)));
    FL_TRY_VOID(junit.close());
  }
  FL_TRY_VOID(output.write(report::gate_text(result, output.form(), output.style())));
  FL_TRY_VOID(output.close());
  return result.exit_code();
}

}  // namespace

Verb gate_verb() {
  return {.name = "gate",
          .sentence =
              "Check new runs against the limits of a baseline: exit code 0 if all hold, 3 if one does not, 4 if "
              "inconclusive.",
          .examples = {"firelane gate --baseline main1.lane main2.lane main3.lane main4.lane -- new*.lane",
                       "firelane gate new.lane --limit step_time=5% --junit gate.xml --markdown"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<GateArgs>();
            flags.add("FILE", args->files, "the new runs: traces, folders or patterns").required().value_name("");
            flags.add("--baseline", args->baseline, "runs to compare with, instead of the store").value_name("FILE...");
            flags.add("--store", args->store, "folder of firelane baseline (default: .firelane/baselines)")
                .value_name("DIR");
            flags.add("--label", args->label, "label of the baseline in the store (default: main)").value_name("NAME");
            flags.add("--limit", args->limits, "a limit, such as step_time=3%; added to those in firelane.toml")
                .once_each()
                .value_name("NAME=LIMIT");
            flags.add("--config", args->config, "configuration file (default: firelane.toml in this folder)")
                .value_name("FILE");
            flags.add("--junit", args->junit, "write the limits as test results into this file").value_name("FILE");
            add_report_options(flags, args->output);
            return [args] { return run_gate(*args); };
          }};
}

}  // namespace firelane::cli

// firelane baseline add|list|show|drop: the folder of small files that firelane gate compares with.
#include <map>

#include "cli/gate_config.h"
#include "cli/output.h"
#include "cli/run_files.h"
#include "cli/verbs.h"
#include "compare/run/store.h"
#include "compare/statistics/judge.h"
#include "report/comparison.h"

namespace firelane::cli {

namespace {

struct BaselineArgs {
  std::string action;
  std::vector<std::string> files;
  std::string store;
  std::string label;
  std::string commit;
  std::string config;
  int64_t keep = 0;
  OutputOptions output;
};

Result<void> add_runs(const BaselineArgs& args, const GateConfig& config, Output& output) {
  if (args.files.empty()) return Error{"baseline add: name the traces to add"};
  FL_TRY(std::vector<compare::Run> runs, open_runs(args.files, config.queries));
  for (compare::Run& run : runs) {
    if (!args.commit.empty()) run.environment.emplace_back("commit", args.commit);
    FL_TRY(const std::string file, compare::add_to_store(config.store, config.label, run));
    FL_TRY_VOID(output.write(file + "\n"));
  }
  return {};
}

std::string commit_of(const compare::Run& run) {
  for (const auto& [name, value] : run.environment) {
    if (name == "commit") return value;
  }
  return "";
}

Result<void> list_labels(const GateConfig& config, Output& output) {
  FL_TRY(const std::vector<compare::StoredRun> stored, compare::read_store(config.store));
  std::map<std::string, std::vector<const compare::StoredRun*>> labels;
  for (const compare::StoredRun& each : stored) labels[each.label].push_back(&each);
  report::Table table{.name = "baselines",
                      .columns = {{"label", "Label"},
                                  {"runs", "Runs", report::Kind::kNumber},
                                  {"step_ns", "Step", report::Kind::kDuration},
                                  {"noise_percent", "Noise between runs", report::Kind::kPercent},
                                  {"last_commit", "Last commit", report::Kind::kText, report::Align::kByKind, 0, true},
                                  {"newest", "Newest file"}}};
  for (const auto& [label, runs] : labels) {
    std::vector<double> steps;
    for (const compare::StoredRun* each : runs) steps.push_back(static_cast<double>(each->run.step_ns));
    const auto noise = compare::noise_of(std::vector<std::vector<double>>{steps});
    table.add({label, static_cast<int64_t>(runs.size()), static_cast<int64_t>(compare::mean(steps)),
               noise ? report::Cell{100 * noise->relative} : report::Cell{},
               report::text_or_none(commit_of(runs.back()->run)), runs.back()->file});
  }
  return output.write(report::render(table, output.form(), output.style()));
}

Result<void> show_label(const GateConfig& config, Output& output) {
  FL_TRY(const std::vector<compare::StoredRun> stored, compare::read_store(config.store, config.label));
  if (stored.empty()) return Error{config.store + ": no baseline '" + config.label + "'"};
  std::vector<compare::Run> runs;
  for (const compare::StoredRun& each : stored) {
    runs.push_back(each.run);
    runs.back().path = each.file;
  }
  return output.write(report::render(report::runs_report(runs, {.one_table = output.form() == report::Form::kCsv}),
                                     output.form(), output.style()));
}

Result<int> run_baseline(const BaselineArgs& args) {
  FL_TRY(GateConfig config, read_gate_config(args.config));
  if (!args.store.empty()) config.store = args.store;
  if (!args.label.empty()) config.label = args.label;
  FL_TRY(Output output, Output::open(args.output));
  if (args.action == "add") {
    FL_TRY_VOID(add_runs(args, config, output));
  } else if (args.action == "list") {
    FL_TRY_VOID(list_labels(config, output));
  } else if (args.action == "show") {
    FL_TRY_VOID(show_label(config, output));
  } else {
    FL_TRY(const int64_t gone, compare::drop_from_store(config.store, config.label, args.keep));
    FL_TRY_VOID(output.write(std::to_string(gone) + (gone == 1 ? " run" : " runs") + " dropped\n"));
  }
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb baseline_verb() {
  return {
      .name = "baseline",
      .sentence = "Keep summaries of runs, a few kilobytes each, for firelane gate to compare with.",
      .examples = {"firelane baseline add --label main --commit \"$(git rev-parse HEAD)\" run*.lane",
                   "firelane baseline list"},
      .setup = [](Flags& flags) -> VerbBody {
        auto args = std::make_shared<BaselineArgs>();
        flags.add("ACTION", args->action, "add, list, show or drop").required().one_of({"add", "list", "show", "drop"});
        flags.add("FILE", args->files, "for add: traces, folders or patterns").value_name("");
        flags.add("--store", args->store, "folder of the summaries (default: .firelane/baselines)").value_name("DIR");
        flags.add("--label", args->label, "label of the baseline (default: main)").value_name("NAME");
        flags.add("--commit", args->commit, "for add: the version that was measured").value_name("ID");
        flags.add("--keep", args->keep, "for drop: keep this many of the newest runs of the label")
            .whole_number()
            .value_name("N");
        flags.add("--config", args->config, "configuration file (default: firelane.toml in this folder)")
            .value_name("FILE");
        add_report_options(flags, args->output);
        return [args] { return run_baseline(*args); };
      }};
}

}  // namespace firelane::cli

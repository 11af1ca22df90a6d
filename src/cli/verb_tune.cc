// firelane tune -- COMMAND: finds settings that make the program faster, and proves it.
//
// Trials are short runs in fresh processes; compare/sweep/tune.h decides what to try next. The winner is then measured
// against the program as it is, in turns.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "advise/text.h"
#include "base/cores.h"
#include "cli/output.h"
#include "cli/python_site.h"
#include "cli/sides.h"
#include "cli/timed_run.h"
#include "cli/variables.h"
#include "cli/verbs.h"
#include "compare/sweep/tune.h"

namespace firelane::cli {

namespace {

using compare::Settings;
using compare::TimedRun;

constexpr std::string_view kExpandable = "PYTORCH_CUDA_ALLOC_CONF";

struct TuneArgs {
  std::vector<std::string> command;
  std::vector<std::string> variables;
  int64_t runs = 4;
  int64_t steps = 30;
  int64_t warmup = 5;
  int64_t max_workers = 0;
  OutputOptions output;
};

bool counts_samples(const std::string& name) {
  return name == "batch" || name == "batch_size" || name == "batch-size" || name == "bs";
}

// A run of the command with settings: variables change the command, knobs are applied inside of the program.
Result<TimedRun> run_with(const TuneArgs& args, const std::vector<Variable>& variables, const Settings& settings,
                          const TemporaryFolder& folder, size_t number) {
  TimedPlan plan{.command = args.command, .steps = args.steps, .warmup = args.warmup};
  for (const auto& [name, value] : settings) {
    const auto variable =
        std::find_if(variables.begin(), variables.end(), [&](const Variable& each) { return each.name == name; });
    if (variable == variables.end()) {
      plan.knobs.emplace_back(name, value);
      if (name == "expandable_segments") plan.environment.emplace_back(kExpandable, "expandable_segments:True");
      continue;
    }
    PointCommand at = command_at(plan.command, {*variable}, {value});
    plan.command = std::move(at.words);
    plan.environment.insert(plan.environment.end(), at.environment.begin(), at.environment.end());
  }
  return run_timed(plan, folder, "run" + std::to_string(number));
}

std::string settings_text(const Settings& settings) {
  if (settings.empty()) return "as it is";
  std::string out;
  for (const auto& [name, value] : settings) out += (out.empty() ? "" : ", ") + name + "=" + value;
  return out;
}

void show_trial(const TimedRun& run, const Settings& settings, size_t number) {
  fmt::print(stderr, "firelane: trial {}, {}: {}\n", number, settings_text(settings),
             run.failure.empty() ? advise::short_time(run.timed.step_ns) + " a step" : run.failure);
}

// Lines of code, and of the command for what the user named.
std::vector<std::string> changes_of(const compare::TuneResult& result, const std::vector<Variable>& variables) {
  std::vector<std::string> out;
  for (const compare::TuneTrial& trial : result.trials) {
    if (trial.kept && trial.settings == result.best) out = trial.run.timed.changes;
  }
  for (const auto& [name, value] : result.best) {
    for (const Variable& variable : variables) {
      if (variable.name == name) {
        out.push_back((variable.flag.empty() ? variable.environment + "=" : variable.flag + " ") + value +
                      " (changes training)");
      }
    }
  }
  return out;
}

Result<Sides> confirm(const std::function<Result<TimedRun>(const Settings&)>& measure, const Settings& best,
                      const std::vector<compare::TuneVariable>& variables, int64_t runs) {
  Sides sides = before_and_after();
  for (int64_t run = 0; run < runs; ++run) {
    for (Side& side : sides) {
      const Settings settings = side.applies ? best : Settings{};
      FL_TRY(const TimedRun timed, measure(settings));
      if (!timed.failure.empty()) return Error{"tune: " + timed.failure};
      const double cost = compare::cost_ns(timed.timed, settings, variables);
      side.steps_ns.push_back(std::llround(cost == 0 ? static_cast<double>(timed.timed.step_ns) : cost));
      fmt::print(stderr, "firelane: run {} of {}, {}: {}\n", run + 1, runs, side.name,
                 advise::short_time(side.steps_ns.back()));
    }
  }
  return sides;
}

std::string trials_text(const compare::TuneResult& result) {
  std::string out;
  for (const compare::TuneTrial& trial : result.trials) {
    out += fmt::format("  {:<44} {:>12}  {}{}\n", settings_text(trial.settings),
                       trial.run.failure.empty() ? advise::short_time(trial.run.timed.step_ns) : "failed", trial.why,
                       trial.run.failure.empty() ? "" : ": " + trial.run.failure);
  }
  for (const std::string& reason : result.left_alone) out += "  left alone: " + reason + "\n";
  return out;
}

void add_trials(JsonWriter& json, const compare::TuneResult& result) {
  json.key("trials").begin_array();
  for (const compare::TuneTrial& trial : result.trials) {
    json.begin_object().key("settings").begin_object();
    for (const auto& [name, value] : trial.settings) json.field(name, value);
    json.end_object().field("step_ns", trial.run.timed.step_ns).field("wait_ns", trial.run.timed.wait_ns);
    json.field("why", trial.why).field("kept", trial.kept).field("failure", trial.run.failure).end_object();
  }
  json.end_array().key("left_alone").begin_array();
  for (const std::string& reason : result.left_alone) json.value(reason);
  json.end_array();
}

Result<int> run_tune(const TuneArgs& args) {
  const Result<std::vector<Variable>> parsed = parse_variables(args.variables);
  if (!parsed.ok()) return complain(parsed.error().message, kExitUsage);
  const std::vector<Variable>& variables = parsed.value();
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY_VOID(put_site_on_python_path("tune"));
  FL_TRY(const TemporaryFolder folder, TemporaryFolder::create("tune"));
  compare::TuneOptions options;
  // Loaders that wait for disks or networks may use more processes than there are cores.
  const auto cores = static_cast<int>(usable_cores());
  options.max_workers = args.max_workers > 0 ? static_cast<int>(args.max_workers) : std::clamp(2 * cores, 4, 32);
  bool per_sample = false;
  for (const Variable& variable : variables) {
    options.variables.push_back({variable.name, variable.values, counts_samples(variable.name)});
    per_sample |= counts_samples(variable.name);
  }
  size_t number = 0;
  const std::function<Result<TimedRun>(const Settings&)> measure = [&](const Settings& settings) {
    return run_with(args, variables, settings, folder, ++number);
  };
  const auto trial = [&](const Settings& settings) -> Result<TimedRun> {
    FL_TRY(TimedRun run, measure(settings));
    // The program as it is has to run: its failure is the answer, and said there.
    if (number > 1 || run.failure.empty()) show_trial(run, settings, number);
    return run;
  };
  FL_TRY(const compare::TuneResult result, compare::tune(trial, options));
  const bool json_form = output.form() == report::Form::kJson;
  JsonWriter json(2);
  json.begin_object();
  std::string text = fmt::format("{} trials\n", result.trials.size()) + trials_text(result);
  if (result.best.empty()) {
    text += "nothing that was tried is faster than the unchanged program\n";
    json.field("found", false);
  } else {
    FL_TRY(const Sides sides, confirm(measure, result.best, options.variables, args.runs));
    const Saved saved = saved_by(sides);
    const std::vector<std::string> changes = changes_of(result, variables);
    text += answer_text(sides, saved, changes, per_sample ? "sample" : "step");
    text += "put this into the program:\n";
    for (const std::string& change : changes) text += "  " + change + "\n";
    json.field("found", true);
    add_answer(json, sides, saved, changes);
  }
  add_trials(json, result);
  FL_TRY_VOID(output.write(json_form ? json.end_object().take() + "\n" : text));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb tune_verb() {
  return {.name = "tune",
          .sentence = "Find settings that make a program faster with a few short runs, and measure what they gain.",
          .examples = {"firelane tune -- python train.py",
                       "firelane tune --var batch=--batch-size:16..256*2 -- python train.py"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<TuneArgs>();
            flags.add("command", args->command, "the program and its arguments, after --").required();
            flags
                .add("--var", args->variables,
                     "a setting of the program that may be changed too, as in firelane sweep; one named batch or "
                     "batch_size is the number of samples")
                .once_each()
                .value_name("VARIABLE");
            const auto count = [&](const std::string& name, int64_t& value, const std::string& help) {
              flags.add(name, value, help).between(int64_t{1}, int64_t{1'000'000}).show_default();
            };
            count("--runs", args->runs,
                  "confirmation runs of the winner and of the unchanged program each, alternating");
            count("--steps", args->steps, "steps of each run to time; the program is ended after them");
            count("--warmup", args->warmup, "steps of each run to skip first");
            flags.add("--max-workers", args->max_workers, "most workers of a DataLoader; 0: twice the cores")
                .between(int64_t{0}, int64_t{1000})
                .show_default();
            flags.add("--json", args->output.json, "the answer as JSON");
            add_file_options(flags, args->output);
            return [args] { return run_tune(*args); };
          }};
}

}  // namespace firelane::cli

// firelane verify FINDING -- COMMAND: does what a finding asks for, where that is a setting, and measures what it
// gains.
//
// The program runs as it is and with the setting, in turns (ABAB), each time in a fresh process.
// python/firelane/_verify.py applies the setting inside of it, times steps without recording anything, and ends the
// program after them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "advise/rule.h"
#include "advise/text.h"
#include "base/json_writer.h"
#include "cli/output.h"
#include "cli/python_site.h"
#include "cli/sides.h"
#include "cli/timed_run.h"
#include "cli/verbs.h"

namespace firelane::cli {

namespace {

struct Setting {
  std::string_view finding;
  std::string_view environment = {};  // NAME=VALUE, for what torch reads when it is imported
};
// What _verify.py can apply, by the same ids.
constexpr std::array<Setting, 10> kSettings = {{
    {"allocator-thrash", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    {"cpu-oversubscription"},
    {"cudnn-benchmark"},
    {"gc-pauses"},
    {"input-bound"},
    {"memory-fragmentation", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    {"pageable-copies"},
    {"single-tensor-optimizer"},
    {"tensor-cores-unused"},
    {"zero-grad-fills"},
}};

struct VerifyArgs {
  std::string finding;
  std::vector<std::string> command;
  int64_t runs = 4;
  int64_t steps = 30;
  int64_t warmup = 5;
  OutputOptions output;
};

// "What to do: ..." of an explanation, on one line.
std::string what_to_do(std::string_view explanation) {
  constexpr std::string_view kWords = "What to do: ";
  const size_t begin = explanation.find(kWords);
  if (begin == std::string_view::npos) return "see firelane explain";
  const size_t end = explanation.find("\n\n", begin);
  std::string text(explanation.substr(begin + kWords.size(), end - begin - kWords.size()));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Result<const Setting*> find_setting(const std::string& finding) {
  const auto setting =
      std::find_if(kSettings.begin(), kSettings.end(), [&](const Setting& each) { return each.finding == finding; });
  if (setting != kSettings.end()) return &*setting;
  const advise::Rule* rule = advise::find_rule(finding);
  if (rule == nullptr) return Error{finding + ": no such finding; firelane explain lists them"};
  return Error{finding +
               " is not a setting but a change to the code, which you have to make: " + what_to_do(rule->explanation)};
}

Result<compare::TimedSteps> run_once(const VerifyArgs& args, const Setting& setting, const Side& side,
                                     const TemporaryFolder& folder) {
  TimedPlan plan{.command = args.command, .steps = args.steps, .warmup = args.warmup};
  if (side.applies) {
    plan.setting = setting.finding;
    const size_t equals = setting.environment.find('=');
    if (equals != std::string_view::npos) {
      plan.environment.emplace_back(setting.environment.substr(0, equals), setting.environment.substr(equals + 1));
    }
  }
  FL_TRY(compare::TimedRun run, run_timed(plan, folder, side.name + std::to_string(side.steps_ns.size() + 1)));
  if (!run.failure.empty()) return Error{"verify: " + run.failure};
  return std::move(run.timed);
}

std::string answer_json(const VerifyArgs& args, const Sides& sides, const Saved& saved,
                        const std::vector<std::string>& changes) {
  JsonWriter json(2);
  json.begin_object().field("finding", args.finding);
  add_answer(json, sides, saved, changes);
  return json.end_object().take() + "\n";
}

Result<int> run_verify(const VerifyArgs& args) {
  FL_TRY(const Setting* setting, find_setting(args.finding));
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY_VOID(put_site_on_python_path("verify"));
  FL_TRY(const TemporaryFolder folder, TemporaryFolder::create("verify"));
  Sides sides = before_and_after();
  std::vector<std::string> changes;
  for (int64_t run = 0; run < args.runs; ++run) {
    for (Side& side : sides) {
      FL_TRY(const compare::TimedSteps timed, run_once(args, *setting, side, folder));
      if (side.applies && timed.changes.empty()) {
        return Error{args.finding +
                     ": the setting changes nothing in this program: it has it already, or never creates the object "
                     "that it applies to"};
      }
      if (side.applies) changes = timed.changes;
      side.steps_ns.push_back(timed.step_ns);
      fmt::print(stderr, "firelane: run {} of {}, {}: {} a step over {} steps\n", run + 1, args.runs, side.name,
                 advise::short_time(timed.step_ns), timed.steps);
    }
  }
  const Saved saved = saved_by(sides);
  const bool json = output.form() == report::Form::kJson;
  FL_TRY_VOID(output.write(json ? answer_json(args, sides, saved, changes) : answer_text(sides, saved, changes)));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb verify_verb() {
  return {
      .name = "verify",
      .sentence =
          "Measure what a finding's fix really gains, if the fix is a setting: run the program with and without it.",
      .examples = {"firelane verify input-bound -- python train.py",
                   "firelane verify single-tensor-optimizer --runs 5 --steps 100 -- python train.py --lr 0.1"},
      .setup = [](Flags& flags) -> VerbBody {
        auto args = std::make_shared<VerifyArgs>();
        flags.add("FINDING", args->finding, "id of a finding, as printed by firelane diagnose").required();
        flags.add("command", args->command, "the program and its arguments, after --").required();
        const auto count = [&](const std::string& name, int64_t& value, const std::string& help) {
          flags.add(name, value, help).between(int64_t{1}, int64_t{1'000'000}).show_default();
        };
        count("--runs", args->runs, "runs with and without the fix each, alternating, in fresh processes");
        count("--steps", args->steps, "steps of each run to time; the program is ended after them");
        count("--warmup", args->warmup, "steps of each run to skip first");
        flags.add("--json", args->output.json, "the answer as JSON");
        add_file_options(flags, args->output);
        return [args] { return run_verify(*args); };
      }};
}

}  // namespace firelane::cli

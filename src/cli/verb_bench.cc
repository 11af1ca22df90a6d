// firelane bench --runs 5 -- COMMAND: runs of a program that can be compared.
//
// Each run is a fresh process under `firelane record`, which times most of its steps without recording and records a
// few for the GPU time of kernels. With --against the two commands take turns (ABAB), so that a machine that warms up
// or slows down does so for both.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "advise/text.h"
#include "cli/child.h"
#include "cli/output.h"
#include "cli/run_files.h"
#include "cli/timed_run.h"
#include "cli/verbs.h"
#include "compare/statistics/judge.h"
#include "report/comparison.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

struct BenchArgs {
  std::vector<std::string> command;
  std::string against;
  int64_t runs = 5;
  int64_t steps = 30;
  int64_t recorded = 3;
  std::string folder = "firelane-bench";
  bool no_early_stop = false;
  double threshold_percent = 3;
  double alpha = 0.05;
  OutputOptions output;
};

struct BenchSide {
  std::string name;  // "a", "b": of its files
  std::vector<std::string> command;
  std::vector<compare::Run> runs;
};

Result<void> run_once(const BenchArgs& args, BenchSide& side, double& wall_s) {
  const std::string number = std::to_string(side.runs.size() + 1);
  const fs::path trace = fs::path(args.folder) / (side.name + number + ".lane");
  const fs::path log = fs::path(args.folder) / (side.name + number + ".log");
  const std::vector<std::string> command = record_run_command(trace.string(), args.steps, args.recorded, side.command,
                                                              {"--no-shapes", "--no-memory"});  // as little as will do
  std::error_code ignored;
  fs::remove(trace, ignored);
  FL_TRY(const ChildResult done, run_child(command, {.log = log.string()}));
  wall_s += done.wall_s;
  if (done.exit_code != 0) {
    return Error{
        fmt::format("bench: the program ended with exit code {}; its output is in {}", done.exit_code, log.string())};
  }
  if (!fs::exists(trace, ignored)) {
    return Error{"bench: nothing was recorded; the program must be Python, import torch and take " +
                 std::to_string(args.steps + args.recorded) + " steps (--steps N for fewer); its output is in " +
                 log.string()};
  }
  FL_TRY(std::vector<compare::Run> runs, open_runs({trace.string()}));
  side.runs.push_back(std::move(runs[0]));
  return {};
}

std::vector<double> steps_of(const BenchSide& side) {
  std::vector<double> out;
  for (const compare::Run& run : side.runs) out.push_back(static_cast<double>(run.step_ns));
  return out;
}

// Looking after each pair gives chance more than one try: half of alpha is left to it.
bool is_clear(const BenchArgs& args, const BenchSide& a, const BenchSide& b) {
  const compare::JudgeOptions options{.alpha = args.alpha / 2, .threshold = args.threshold_percent / 100};
  const compare::Judgement j = compare::judge(steps_of(a), steps_of(b), options);
  if (j.method == compare::Method::kNone) return false;
  if (j.outcome == compare::Outcome::kMore || j.outcome == compare::Outcome::kLess) return true;
  return j.outcome == compare::Outcome::kSame && j.smallest_change <= options.threshold * (1 + 1e-9) &&
         j.range.low > 1 - options.threshold && j.range.high < 1 + options.threshold;
}

std::string noise_line(const BenchArgs& args, const BenchSide& side) {
  const std::vector<double> steps = steps_of(side);
  std::string text = "a step takes " + advise::short_time(std::llround(compare::mean(steps)));
  const auto noise = compare::noise_of(std::vector<std::vector<double>>{steps});
  if (!noise) return text + "; more runs show how much that varies\n";
  const compare::JudgeOptions options{.alpha = args.alpha, .threshold = 0};
  text +=
      fmt::format("; runs vary by {:.2f}%: this many runs per side detect a change of {:.1f}%", 100 * noise->relative,
                  100 * compare::smallest_change(*noise, steps.size(), steps.size(), options));
  const int64_t needed = compare::runs_for(args.threshold_percent / 100, *noise, options);
  if (needed > 0) text += fmt::format("; {:.3g}% takes {} runs per side", args.threshold_percent, needed);
  return text + "\n";
}

Result<int> run_bench(const BenchArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  std::error_code error;
  fs::create_directories(args.folder, error);
  if (error) return Error{args.folder + ": " + error.message()};
  std::vector<BenchSide> sides = {{"a", args.command, {}}};
  if (!args.against.empty()) sides.push_back({"b", {"sh", "-c", "exec " + args.against}, {}});
  double wall_s = 0;
  const int64_t all = args.runs * static_cast<int64_t>(sides.size());
  int64_t done = 0;
  for (int64_t run = 0; run < args.runs; ++run) {
    for (BenchSide& side : sides) {
      FL_TRY_VOID(run_once(args, side, wall_s));
      ++done;
      fmt::print(stderr, "firelane: run {} of {} ({}): {} a step; about {:.0f} s left\n", done, all,
                 side.name + std::to_string(side.runs.size()), advise::short_time(side.runs.back().step_ns),
                 wall_s / static_cast<double>(done) * static_cast<double>(all - done));
    }
    if (sides.size() == 2 && !args.no_early_stop && run + 1 < args.runs && is_clear(args, sides[0], sides[1])) {
      fmt::print(stderr, "firelane: the answer is clear after {} runs per side\n", run + 1);
      break;
    }
  }
  if (sides.size() == 2) {
    const compare::Difference difference = compare::compare_sides(
        sides[0].runs, sides[1].runs, {.alpha = args.alpha, .threshold = args.threshold_percent / 100});
    const bool for_people = output.form() == report::Form::kText || output.form() == report::Form::kMarkdown;
    FL_TRY_VOID(output.write(report::comparison_text(difference, for_people ? 15 : 0, output.form(), output.style())));
  } else {
    FL_TRY_VOID(output.write(
        report::render(report::runs_report(sides[0].runs, {.one_table = output.form() == report::Form::kCsv}),
                       output.form(), output.style())));
    std::fputs(noise_line(args, sides[0]).c_str(), stderr);
  }
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb bench_verb() {
  return {
      .name = "bench",
      .sentence = "Run a program several times in fresh processes, for compare, gate and baseline.",
      .examples = {"firelane bench --runs 5 -- python train.py",
                   "firelane bench --runs 8 --against 'python new.py' -- python old.py"},
      .setup = [](Flags& flags) -> VerbBody {
        auto args = std::make_shared<BenchArgs>();
        flags.add("command", args->command, "the program and its arguments, after --").required();
        flags.add("--against", args->against, "a second command, run alternately with the first and compared with it")
            .value_name("COMMAND");
        flags.add("--runs", args->runs, "runs of each command").between(int64_t{1}, int64_t{1000}).show_default();
        flags.add("--steps", args->steps, "steps of each run to time; warm-up among them is found and left out")
            .between(int64_t{1}, int64_t{1000000})
            .show_default();
        flags.add("--recorded", args->recorded, "steps of each run to record after that, for kernel times")
            .between(int64_t{1}, int64_t{1000})
            .show_default();
        flags.add("--folder", args->folder, "for the traces a1.lane, b1.lane, ... and the programs' output")
            .value_name("DIR")
            .show_default();
        flags.add("--no-early-stop", args->no_early_stop, "do all runs, even if the answer is clear earlier");
        flags.add("--threshold", args->threshold_percent, "a difference of less than this many percent does not matter")
            .between(0.0, 1000.0)
            .value_name("PERCENT")
            .show_default();
        add_report_options(flags, args->output);
        return [args] { return run_bench(*args); };
      }};
}

}  // namespace firelane::cli

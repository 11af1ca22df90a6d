// firelane sweep --var batch=--batch-size:8,16,32 -- COMMAND: the program at each point of a grid of settings.
//
// Each point is a fresh process under `firelane record`, and its trace or the reason of its failure stays in the
// folder: a sweep that was interrupted goes on where it was, and more values can be added to one that is done.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "advise/text.h"
#include "cli/child.h"
#include "cli/output.h"
#include "cli/run_files.h"
#include "cli/timed_run.h"
#include "cli/variables.h"
#include "cli/verbs.h"
#include "report/sweep_report.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

struct SweepArgs {
  std::vector<std::string> command;
  std::vector<std::string> variables;
  int64_t steps = 30;
  int64_t recorded = 3;
  std::string folder = "firelane-sweep";
  bool again = false;
  double price_per_hour = -1;
  OutputOptions output;
};

// Values become file names: what a path or a shell could take amiss is replaced.
std::string file_stem(const std::vector<Variable>& variables, const Point& point) {
  std::string out;
  for (size_t i = 0; i < variables.size(); ++i) out += (i == 0 ? "" : ",") + variables[i].name + "=" + point[i];
  for (char& c : out) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && std::string_view("=,.+-_").find(c) == std::string_view::npos) {
      c = '_';
    }
  }
  return out;
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Result<void> write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return Error{path.string() + ": cannot be written"};
  return {};
}

// A folder belongs to one command.
Result<void> claim_folder(const SweepArgs& args) {
  std::error_code error;
  fs::create_directories(args.folder, error);
  if (error) return Error{args.folder + ": " + error.message()};
  std::string command;
  for (const std::string& word : args.command) command += word + "\n";
  const fs::path note = fs::path(args.folder) / "command.txt";
  if (!args.again && fs::exists(note, error) && read_text(note) != command) {
    return Error{args.folder +
                 ": holds the points of another command; choose another --folder, or add --again to measure again"};
  }
  return write_text(note, command);
}

struct PointFiles {
  fs::path trace, log, failure;
};

Result<void> run_point(const SweepArgs& args, const PointCommand& point, const PointFiles& files) {
  // Under its name only when it is whole: a sweep may be interrupted at any time.
  const fs::path partial = files.trace.string() + ".part.lane";
  std::error_code ignored;
  for (const fs::path& old : {files.trace, files.failure, partial}) fs::remove(old, ignored);
  const auto command = record_run_command(partial.string(), args.steps, args.recorded, point.words);
  FL_TRY(const ChildResult done, run_child(command, {.log = files.log.string(), .environment = point.environment}));
  if (done.exit_code == 128 + SIGINT) return Error{"sweep: interrupted; the same command continues from here"};
  if (done.exit_code != 0) {
    fs::remove(partial, ignored);  // of the steps before the failure: part of an answer would pass for all of it
    return write_text(files.failure, failure_of(files.log.string(), done.exit_code));
  }
  fs::rename(partial, files.trace, ignored);
  if (!fs::exists(files.trace, ignored)) {
    return write_text(files.failure,
                      fmt::format("nothing was recorded: the program must be Python, import torch and take {} steps",
                                  args.steps + args.recorded));
  }
  return {};
}

Result<int> run_sweep(const SweepArgs& args) {
  if (args.variables.empty()) {
    return complain("sweep: name a variable: --var batch=--batch-size:8,16,32", kExitUsage);
  }
  const Result<std::vector<Variable>> parsed = parse_variables(args.variables);
  if (!parsed.ok()) return complain(parsed.error().message, kExitUsage);
  const std::vector<Variable>& variables = parsed.value();
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY_VOID(claim_folder(args));
  compare::Sweep sweep;
  for (const Variable& variable : variables) sweep.variables.push_back(variable.name);
  const std::vector<Point> points = all_points(variables);
  double wall_s = 0;
  size_t measured = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const fs::path base = fs::path(args.folder) / file_stem(variables, points[i]);
    const PointFiles files{base.string() + ".lane", base.string() + ".log", base.string() + ".failed"};
    std::error_code ignored;
    const bool is_known = !args.again && (fs::exists(files.trace, ignored) || fs::exists(files.failure, ignored));
    const auto start = std::chrono::steady_clock::now();
    if (!is_known) {
      FL_TRY_VOID(run_point(args, command_at(args.command, variables, points[i]), files));
      wall_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      ++measured;
    }
    compare::SweepPoint point{.values = points[i]};
    if (fs::exists(files.failure, ignored)) {
      point.failure = read_text(files.failure);
    } else {
      FL_TRY(std::vector<compare::Run> runs, open_runs({files.trace.string()}));
      point.run = std::move(runs[0]);
    }
    const std::string left = measured == 0
                                 ? ""
                                 : fmt::format("; about {:.0f} s left", wall_s / static_cast<double>(measured) *
                                                                            static_cast<double>(points.size() - i - 1));
    fmt::print(stderr, "firelane: point {} of {}, {}: {}{}\n", i + 1, points.size(), name_of(variables, points[i]),
               point.run ? advise::short_time(point.run->step_ns) + " a step" + (is_known ? " (measured before)" : "")
                         : point.failure,
               left);
    sweep.points.push_back(std::move(point));
  }
  FL_TRY_VOID(
      output.write(report::render(report::sweep_report(sweep, args.price_per_hour), output.form(), output.style())));
  FL_TRY_VOID(output.close());
  const fs::path picture = fs::path(args.folder) / "sweep.svg";
  FL_TRY_VOID(write_text(picture, report::sweep_svg(sweep)));
  fmt::print(stderr, "firelane: the plot is {}; the traces beside it open with firelane view\n", picture.string());
  return kExitOk;
}

}  // namespace

Verb sweep_verb() {
  return {.name = "sweep",
          .sentence = "Run a program over a grid of settings: step time, throughput, memory and energy of each point.",
          .examples =
              {"firelane sweep --var batch=--batch-size:8,16,32 -- python train.py",
               "firelane sweep --var batch=--batch-size:8..128*2 --var workers=env:WORKERS:0..4 -- python train.py"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<SweepArgs>();
            flags.add("command", args->command, "the program and its arguments, after --").required();
            flags
                .add("--var", args->variables,
                     "NAME=--flag:VALUES or NAME=env:VARIABLE:VALUES; VALUES are 8,16,32 or 0..8 or 0..64+8 or 1..64*2")
                .once_each()
                .value_name("VARIABLE");
            flags.add("--steps", args->steps, "steps of each point to time; warm-up among them is found and left out")
                .between(int64_t{1}, int64_t{1000000})
                .show_default();
            flags.add("--recorded", args->recorded, "steps of each point to record after that")
                .between(int64_t{1}, int64_t{1000})
                .show_default();
            flags.add("--folder", args->folder, "for the traces, the programs' output and the plot, sweep.svg")
                .value_name("DIR")
                .show_default();
            flags.add("--again", args->again, "measure points again that are already in the folder");
            flags.add("--price-per-hour", args->price_per_hour, "of the devices of a run").between(0.0, 1e9);
            add_report_options(flags, args->output);
            return [args] { return run_sweep(*args); };
          }};
}

}  // namespace firelane::cli

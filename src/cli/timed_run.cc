#include "cli/timed_run.h"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX, and not in <cstdlib>
#include <unistd.h>

#include <fstream>

#include "base/cores.h"
#include "base/environment.h"
#include "base/json_writer.h"
#include "cli/child.h"

namespace firelane::cli {

namespace fs = std::filesystem;
using compare::TimedRun;
using compare::TimedSteps;

Result<TemporaryFolder> TemporaryFolder::create(const std::string& verb) {
  std::string path = (fs::temp_directory_path() / ("firelane-" + verb + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) return Error{path + ": cannot be created"};
  return TemporaryFolder(path);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

namespace {

// Lines "name value", then "changes" and a line for each.
Result<TimedSteps> read_timed(const fs::path& path) {
  std::ifstream file(path);
  TimedSteps timed;
  std::string name;
  while (file >> name && name != "changes") {
    int64_t value = 0;
    if (!(file >> value)) return Error{path.string() + ": no number after " + name};
    if (name == "step_ns") timed.step_ns = value;
    if (name == "steps") timed.steps = value;
    if (name == "wait_ns") timed.wait_ns = value;
    if (name == "workers") timed.workers = value;
    if (name == "batch") timed.batch = value;
    if (name == "peak_bytes") timed.peak_bytes = value;
    if (name == "memory_bytes") timed.memory_bytes = value;
    if (name == "has_gpu") timed.has_gpu = value != 0;
    if (name == "convolutions") timed.convolutions = value != 0;
    if (name == "allocates") timed.allocates = value != 0;
  }
  if (timed.step_ns <= 0) return Error{path.string() + ": no times in it"};
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) timed.changes.push_back(line);
  return timed;
}

}  // namespace

Result<TimedRun> run_timed(const TimedPlan& plan, const TemporaryFolder& folder, const std::string& name) {
  const fs::path answer = folder.file(name);
  const fs::path log = folder.file(name + ".log");
  JsonWriter json;
  json.begin_object().field("output", answer.string()).field("setting", plan.setting);
  json.field("cores", usable_cores())
      .field("steps", plan.steps)
      .field("warmup", plan.warmup)
      .key("knobs")
      .begin_object();
  for (const auto& [knob, value] : plan.knobs) json.field(knob, value);
  json.end_object().end_object();
  auto environment = plan.environment;
  environment.emplace_back(environment::kVerify.name, json.take());
  environment.emplace_back(environment::kRecord.name, "");
  FL_TRY(const ChildResult done, run_child(plan.command, {.log = log.string(), .environment = environment}));
  std::error_code ignored;
  if (fs::exists(answer, ignored)) {
    FL_TRY(TimedSteps timed, read_timed(answer));
    return TimedRun{std::move(timed), ""};
  }
  return TimedRun{{},
                  "no steps were timed: " + failure_of(log.string(), done.exit_code) +
                      "; the program must be Python, import torch and take more than " + std::to_string(plan.warmup) +
                      " steps"};
}

std::vector<std::string> record_run_command(const std::string& trace, int64_t steps, int64_t recorded,
                                            const std::vector<std::string>& command,
                                            const std::vector<std::string>& flags) {
  std::vector<std::string> out = {own_program(), "record", "--quiet", "--end", "--force", "-o", trace};
  const std::vector<std::string> plan = {
      "--wait", std::to_string(steps), "--steps", std::to_string(recorded), "--after", "3"};
  out.insert(out.end(), plan.begin(), plan.end());
  out.insert(out.end(), flags.begin(), flags.end());
  out.emplace_back("--");
  out.insert(out.end(), command.begin(), command.end());
  return out;
}

}  // namespace firelane::cli

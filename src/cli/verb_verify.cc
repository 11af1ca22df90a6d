// firelane verify FINDING -- COMMAND: does what a finding asks for, where that is a setting, and measures what it
// gains.
//
// The program runs as it is and with the setting, in turns (ABAB), each time in a fresh process.
// python/firelane/_verify.py applies the setting inside of it, times steps without recording anything, and ends the
// program after them.
#include <fmt/format.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv is POSIX, and not in <cstdlib>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "advise/rule.h"
#include "advise/text.h"
#include "base/environment.h"
#include "base/json_writer.h"
#include "cli/child.h"
#include "cli/output.h"
#include "cli/python_site.h"
#include "cli/verbs.h"
#include "compare/statistics/judge.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

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

struct Side {
  std::string name;  // "before", "after"
  bool applies = false;
  std::vector<int64_t> steps_ns;  // one a run
};

// A folder that is gone with this object.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create() {
    std::string path = (fs::temp_directory_path() / "firelane-verify-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) return Error{path + ": cannot be created"};
    return TemporaryFolder(path);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  fs::path file(const std::string& name) const { return fs::path(path_) / name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
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
               " is no setting but a change of the code, which you have to make: " + what_to_do(rule->explanation)};
}

struct Timed {
  int64_t step_ns = 0;
  int64_t steps = 0;
  std::vector<std::string> changes;
};

// Lines: a step's time, how many were timed, what the setting changed.
Result<Timed> read_timed(const fs::path& path) {
  std::ifstream file(path);
  Timed timed;
  if (!(file >> timed.step_ns >> timed.steps)) return Error{path.string() + ": no times in it"};
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) timed.changes.push_back(line);
  return timed;
}

void set_environment(const Setting& setting, bool applies) {
  if (setting.environment.empty()) return;
  const size_t equals = setting.environment.find('=');
  const std::string name(setting.environment.substr(0, equals));
  if (applies) {
    setenv(name.c_str(), std::string(setting.environment.substr(equals + 1)).c_str(), 1);
  } else {
    unsetenv(name.c_str());
  }
}

Result<Timed> run_once(const VerifyArgs& args, const Setting& setting, const Side& side,
                       const TemporaryFolder& folder) {
  const std::string name = side.name + std::to_string(side.steps_ns.size() + 1);
  const fs::path answer = folder.file(name);
  const fs::path log = folder.file(name + ".log");
  JsonWriter plan;
  plan.begin_object().field("output", answer.string()).field("setting", side.applies ? setting.finding : "");
  plan.field("steps", args.steps).field("warmup", args.warmup).end_object();
  setenv(environment::kVerify.name, plan.take().c_str(), 1);
  set_environment(setting, side.applies);
  FL_TRY(const ChildResult done, run_child(args.command, {.log = log.string()}));
  std::error_code ignored;
  if (fs::exists(answer, ignored)) return read_timed(answer);
  std::ifstream file(log);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line.empty() ? last : line;
  return Error{
      fmt::format("verify: no steps were timed: the program ended with exit code {}{}; it must be Python, import "
                  "torch and take more than {} steps",
                  done.exit_code, last.empty() ? "" : " (\"" + last + "\")", args.warmup)};
}

std::string runs_text(const Side& side) {
  std::string text;
  for (const int64_t ns : side.steps_ns) text += (text.empty() ? "" : ", ") + advise::short_time(ns);
  return text;
}

std::string saved_text(double ns) {
  const std::string text = advise::short_time(std::llround(std::abs(ns)));
  return ns < 0 ? "-" + text : text;
}

// What a step takes less; the range where there are runs enough for one.
struct Saved {
  compare::Judgement judged;
  double ns() const { return judged.before - judged.after; }
  double low_ns() const { return judged.before * (1 - judged.range.high); }
  double high_ns() const { return judged.before * (1 - judged.range.low); }
};

Saved saved_by(const std::array<Side, 2>& sides) {
  std::array<std::vector<double>, 2> runs;
  for (size_t i = 0; i < sides.size(); ++i) runs[i].assign(sides[i].steps_ns.begin(), sides[i].steps_ns.end());
  return {compare::judge(runs[0], runs[1], {.threshold = 0})};
}

std::string answer_text(const std::array<Side, 2>& sides, const Saved& saved, const std::vector<std::string>& changes) {
  const compare::Judgement& judged = saved.judged;
  std::string out = "with " + fmt::format("{}", fmt::join(changes, ", ")) + "\n";
  for (const Side& side : sides) {
    const double ns = side.applies ? judged.after : judged.before;
    out +=
        fmt::format("  {:<7} {:>9} a step   ({})\n", side.name, advise::short_time(std::llround(ns)), runs_text(side));
  }
  out += saved.ns() >= 0 ? fmt::format("saves {} per step: {:.2f}x as fast", saved_text(saved.ns()),
                                       judged.before / std::max(1.0, judged.after))
                         : fmt::format("costs {} per step", saved_text(-saved.ns()));
  if (judged.has_range) {
    out += fmt::format("; saved, 95% sure: {} to {}", saved_text(saved.low_ns()), saved_text(saved.high_ns()));
  }
  switch (judged.outcome) {
    case compare::Outcome::kLess: return out + "; more than noise\n";
    case compare::Outcome::kMore: return out + "; slower, and that is more than noise\n";
    case compare::Outcome::kInconclusive: return out + "; --runs 4 or more tell whether that is noise\n";
    default:
      return out + "; not more than noise: --runs " + std::to_string(2 * sides[0].steps_ns.size()) +
             " sees smaller gains\n";
  }
}

std::string answer_json(const VerifyArgs& args, const std::array<Side, 2>& sides, const Saved& saved,
                        const std::vector<std::string>& changes) {
  JsonWriter json(2);
  json.begin_object().field("finding", args.finding).key("changes").begin_array();
  for (const std::string& change : changes) json.value(change);
  json.end_array();
  for (const Side& side : sides) {
    json.key(side.name + "_ns").begin_array();
    for (const int64_t ns : side.steps_ns) json.value(ns);
    json.end_array();
  }
  json.field("saved_ns", std::llround(saved.ns()));
  if (saved.judged.has_range) {
    json.field("low_ns", std::llround(saved.low_ns())).field("high_ns", std::llround(saved.high_ns()));
  }
  json.field("outcome", compare::name_of(saved.judged.outcome));
  return json.end_object().take() + "\n";
}

Result<int> run_verify(const VerifyArgs& args) {
  FL_TRY(const Setting* setting, find_setting(args.finding));
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY_VOID(put_site_on_python_path("verify"));
  FL_TRY(const TemporaryFolder folder, TemporaryFolder::create());
  unsetenv(environment::kRecord.name);
  std::array<Side, 2> sides = {{{.name = "before"}, {.name = "after", .applies = true}}};
  std::vector<std::string> changes;
  for (int64_t run = 0; run < args.runs; ++run) {
    for (Side& side : sides) {
      FL_TRY(const Timed timed, run_once(args, *setting, side, folder));
      if (side.applies && timed.changes.empty()) {
        return Error{args.finding +
                     ": the setting changes nothing in this program: it has it already, or does not make "
                     "what it is for"};
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
  return {.name = "verify",
          .sentence = "Measures what a finding's fix really gains, where it is a setting: runs with and without it.",
          .examples = {"firelane verify input-bound -- python train.py",
                       "firelane verify single-tensor-optimizer --runs 5 --steps 100 -- python train.py --lr 0.1"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<VerifyArgs>();
            flags.add("FINDING", args->finding, "id of a finding, as firelane diagnose says it").required();
            flags.add("command", args->command, "the program and its arguments, after --").required();
            const auto count = [&](const std::string& name, int64_t& value, const std::string& help) {
              flags.add(name, value, help).between(int64_t{1}, int64_t{1'000'000}).show_default();
            };
            count("--runs", args->runs, "runs without and as many with it, in turns, each in a fresh process");
            count("--steps", args->steps, "steps of each run to time; the program is ended after them");
            count("--warmup", args->warmup, "steps of each run that pass first");
            flags.add("--json", args->output.json, "the answer as JSON");
            add_file_options(flags, args->output);
            return [args] { return run_verify(*args); };
          }};
}

}  // namespace firelane::cli

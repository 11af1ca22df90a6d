// firelane hangs: which rank holds up a job, from the dumps of NCCL's flight recorder.
#include <algorithm>
#include <filesystem>

#include "cli/flight_files.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "flight/hangs.h"
#include "report/hangs_report.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

struct HangsArgs {
  std::vector<std::string> files;
  OutputOptions output;
};

// Files as they are; of a folder all files in it, in the order of their names.
Result<std::vector<std::string>> list_files(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    std::error_code error;
    if (!fs::is_directory(name, error)) {
      out.push_back(name);
      continue;
    }
    std::vector<std::string> inside;
    for (const fs::directory_entry& entry : fs::directory_iterator(name, error)) {
      if (entry.is_regular_file(error) && !entry.path().filename().string().starts_with("."))
        inside.push_back(entry.path().string());
    }
    if (error) return Error{name + ": " + error.message()};
    if (inside.empty()) return Error{name + ": an empty folder"};
    std::sort(inside.begin(), inside.end());
    out.insert(out.end(), inside.begin(), inside.end());
  }
  return out;
}

Result<int> run_hangs(const HangsArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const std::vector<std::string> files, list_files(args.files));
  FL_TRY(const std::vector<FlightLog> logs, load_logs(files));
  const flight::HangReport found = flight::find_hangs(logs);
  FL_TRY_VOID(output.write(report::render(report::hangs_report(found), output.form(), output.style())));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb hangs_verb() {
  return {.name = "hangs",
          .sentence =
              "Find which rank holds up a job that hangs, and in which collective, from NCCL flight recorder dumps.",
          .examples = {"firelane hangs /tmp/nccl_trace_rank_*", "firelane hangs dumps/ --json"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<HangsArgs>();
            flags.add("FILE", args->files, "dumps of the ranks, pickle or JSON, or a folder of them")
                .required()
                .value_name("");
            add_report_options(flags, args->output);
            return [args] { return run_hangs(*args); };
          }};
}

}  // namespace firelane::cli

// firelane ranks DIR|FILES..., ranks map FILES... -o PART|DIR, ranks reduce PARTS...: how a distributed job scales.
#include <unistd.h>

#include <filesystem>

#include "cli/flight_files.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/rank_files.h"
#include "cli/verbs.h"
#include "cli/viewing.h"
#include "ranks/part/map.h"
#include "ranks/part/part_file.h"
#include "report/hangs_report.h"
#include "report/ranks_report.h"

namespace firelane::cli {

namespace {

struct RanksArgs {
  std::vector<std::string> names;
  bool keep_parts = false;
  uint32_t workers = 0;
  size_t rows = 15;
  double price_per_hour = -1;
  double link_gb_s = -1;
  bool view = false;
  ViewOptions viewing;
  OutputOptions output;
};

// One trace to one part: the half that runs where the trace is.
Result<void> map_one(const std::string& trace_path, const OutputOptions& to) {
  FL_TRY(Output output, Output::open(to));
  FL_TRY(const auto trace, open_trace(trace_path));
  FL_TRY_VOID(output.write(ranks::encode_part(ranks::map_trace(*trace))));
  return output.close();
}

// Several one after another, into a folder: what is started once for many small traces.
Result<int> run_map(const RanksArgs& args) {
  if (args.names.size() < 2) return complain("ranks map: name a trace, and the part with -o", kExitUsage);
  if (args.names.size() == 2) {
    if (args.output.path == "-" && ::isatty(STDOUT_FILENO) == 1) {
      return complain("ranks map: a part is not text; name its file with -o PART", kExitUsage);
    }
    FL_TRY_VOID(map_one(args.names[1], args.output));
    return kExitOk;
  }
  std::error_code error;
  if (!std::filesystem::is_directory(args.output.path, error)) {
    return complain("ranks map: several traces become parts in a folder; name one that is there with -o DIR",
                    kExitUsage);
  }
  for (size_t i = 1; i < args.names.size(); ++i) {
    OutputOptions to = args.output;
    to.path = (std::filesystem::path(args.output.path) / (std::to_string(i - 1) + ".part")).string();
    FL_TRY_VOID(map_one(args.names[i], to));
  }
  return kExitOk;
}

Result<int> run_job(const RanksArgs& args, const std::vector<std::string>& names) {
  if (names.empty()) return complain("ranks: name a folder of traces, or the traces of the ranks", kExitUsage);
  const RankFilesOptions how{.keep_parts = args.keep_parts, .workers = args.workers};
  if (args.view) return serve_ranks(names, how, args.price_per_hour, args.viewing);
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const RankFiles files, find_job_files(names));
  if (files.traces.empty()) {  // dumps alone
    FL_TRY(const std::vector<FlightLog> logs, load_logs(files.dumps));
    const report::Report found = report::hangs_report(flight::find_hangs(logs));
    FL_TRY_VOID(output.write(report::render(found, output.form(), output.style())));
    FL_TRY_VOID(output.close());
    return kExitOk;
  }
  FL_TRY(const auto job, open_job(names, how));
  FL_TRY_VOID(output.write(report::ranks_text(
      job->result, {.rows = args.rows, .price_per_hour = args.price_per_hour, .link_gb_s = args.link_gb_s},
      output.form(), output.style())));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

Result<int> run_ranks(const RanksArgs& args) {
  // A folder that is called map or reduce is named ./map.
  if (!args.names.empty() && args.names[0] == "map") return run_map(args);
  const bool reduce = !args.names.empty() && args.names[0] == "reduce";
  return run_job(args, {args.names.begin() + (reduce ? 1 : 0), args.names.end()});
}

}  // namespace

Verb ranks_verb() {
  return {.name = "ranks",
          .sentence =
              "How a distributed job scales: who was late, why, and what it cost; clocks aligned, waiting told from "
              "moving.",
          .examples = {"firelane ranks traces/",
                       "firelane ranks map rank3.json.gz -o rank3.part && firelane ranks reduce *.part"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<RanksArgs>();
            flags
                .add("NAME", args->names,
                     "a folder, traces or parts; `map FILE` makes the part of one trace, `map FILES -o DIR` those of "
                     "several, "
                     "`reduce PARTS` the answer from parts")
                .value_name("");
            flags.add("--keep-parts", args->keep_parts,
                      "keep TRACE.part beside each trace, and use those that are there");
            flags.add("--workers", args->workers, "traces to read at a time; 0 = one a core")
                .whole_number()
                .value_name("N")
                .show_default();
            flags.add("--price-per-hour", args->price_per_hour, "of one GPU, for what was lost").between(0.0, 1e9);
            flags
                .add("--link-gb-s", args->link_gb_s,
                     "what the network between hosts could carry for one GPU, one way: bandwidths are compared with it "
                     "(400 Gbit/s InfiniBand: 50)")
                .between(0.0, 1e6);
            flags.add("--rows", args->rows, "show this many rows of each table in text and Markdown; 0 = all")
                .whole_number()
                .value_name("N")
                .show_default();
            flags.add("--view", args->view, "open the job in the browser instead");
            add_view_options(flags, args->viewing);
            add_report_options(flags, args->output);
            return [args] { return run_ranks(*args); };
          }};
}

}  // namespace firelane::cli

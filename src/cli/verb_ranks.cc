// firelane ranks DIR|FILES..., ranks map FILES... -o PART|DIR, ranks slice PARTS -o FILE, ranks match SLICES -o FILE,
// ranks reduce PARTS...: how a distributed job scales.
#include <unistd.h>

#include <filesystem>

#include "cli/flight_files.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/rank_files.h"
#include "cli/verbs.h"
#include "cli/viewing.h"
#include "import/load.h"
#include "ranks/part/map.h"
#include "ranks/part/part_file.h"
#include "ranks/reduce/gather.h"
#include "ranks/reduce/shuffle.h"
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
  uint32_t threads = 0;
  std::string matches;
  uint32_t ranks_per_host = 0;
  bool view = false;
  ViewOptions viewing;
  OutputOptions output;
};

// One trace to one part: the half that runs where the trace is.
Result<void> map_one(const std::string& trace_path, unsigned threads, const OutputOptions& to) {
  FL_TRY(Output output, Output::open(to));
  FL_TRY(Model model, importer::load_trace(trace_path, {.threads = threads}));
  FL_TRY_VOID(output.write(ranks::encode_part(ranks::map_trace(StudiedTrace(std::move(model))))));
  return output.close();
}

// What is written for machines would fill a terminal with noise.
bool goes_to_terminal(const RanksArgs& args) { return args.output.path == "-" && ::isatty(STDOUT_FILENO) == 1; }

// The numbered rows of parts, cut by group and range: what a cluster shuffles.
Result<int> run_slice(const RanksArgs& args) {
  if (args.names.size() < 2 || goes_to_terminal(args)) {
    return complain("ranks slice: name parts or a folder of them, and the file with -o FILE", kExitUsage);
  }
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const std::vector<std::string> files, ranks::find_rank_files({args.names.begin() + 1, args.names.end()}));
  for (const std::string& file : files) {
    FL_TRY(ranks::Part part, ranks::read_part(file));
    FL_TRY_VOID(output.write(ranks::slice_part(std::move(part))));
  }
  FL_TRY_VOID(output.close());
  return kExitOk;
}

// Slices of the same groups and ranges become what `ranks reduce --matches` takes.
Result<int> run_match(const RanksArgs& args) {
  if (args.names.size() < 2 || goes_to_terminal(args)) {
    return complain("ranks match: name slices or a folder of them, and the file with -o FILE", kExitUsage);
  }
  FL_TRY(Output output, Output::open(args.output));
  std::string frames;
  for (size_t i = 1; i < args.names.size(); ++i) {
    for (const std::string& file : files_in(args.names[i])) {
      FL_TRY(const std::string own, read_whole(file));
      frames += own;
    }
  }
  FL_TRY(const std::string matches, ranks::match_slices(frames, args.names[1]));
  FL_TRY_VOID(output.write(matches));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

// Several one after another, into a folder: what is started once for many small traces.
Result<int> run_map(const RanksArgs& args) {
  if (args.names.size() < 2) return complain("ranks map: name a trace, and the part with -o", kExitUsage);
  if (args.names.size() == 2) {
    if (goes_to_terminal(args)) {
      return complain("ranks map: a part is not text; name its file with -o PART", kExitUsage);
    }
    FL_TRY_VOID(map_one(args.names[1], args.threads, args.output));
    return kExitOk;
  }
  std::error_code error;
  if (!std::filesystem::is_directory(args.output.path, error)) {
    return complain("ranks map: several traces become parts in a folder; name an existing one with -o DIR", kExitUsage);
  }
  for (size_t i = 1; i < args.names.size(); ++i) {
    OutputOptions to = args.output;
    to.path = (std::filesystem::path(args.output.path) / (std::to_string(i - 1) + ".part")).string();
    FL_TRY_VOID(map_one(args.names[i], args.threads, to));
  }
  return kExitOk;
}

Result<int> run_job(const RanksArgs& args, const std::vector<std::string>& names) {
  if (names.empty()) return complain("ranks: name a folder of traces, or the traces of the ranks", kExitUsage);
  const RankFilesOptions how{.keep_parts = args.keep_parts,
                             .workers = args.workers,
                             .matches = args.matches,
                             .ranks_per_host = args.ranks_per_host};
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
  // A folder that is called map, slice, match or reduce is named ./map.
  if (!args.names.empty() && args.names[0] == "map") return run_map(args);
  if (!args.names.empty() && args.names[0] == "slice") return run_slice(args);
  if (!args.names.empty() && args.names[0] == "match") return run_match(args);
  const bool reduce = !args.names.empty() && args.names[0] == "reduce";
  return run_job(args, {args.names.begin() + (reduce ? 1 : 0), args.names.end()});
}

}  // namespace

Verb ranks_verb() {
  return {
      .name = "ranks",
      .sentence =
          "Show how a distributed job scales: who was late, why, and what it cost; clocks aligned, waiting separated "
          "from data transfer.",
      .examples = {"firelane ranks traces/",
                   "firelane ranks map rank3.json.gz -o parts/rank3.part && firelane ranks reduce parts/"},
      .setup = [](Flags& flags) -> VerbBody {
        auto args = std::make_shared<RanksArgs>();
        flags
            .add("NAME", args->names,
                 "a folder, traces or parts. `map FILE -o PART` makes the part of one trace, `map FILES -o DIR` those "
                 "of several, `reduce PARTS` computes the answer from parts; `slice PARTS -o FILE` and `match SLICES "
                 "-o FILE` match collectives on many machines, for `reduce PARTS --matches FILE`")
            .value_name("");
        flags.add("--keep-parts", args->keep_parts, "write TRACE.part next to each trace, and reuse existing ones");
        flags.add("--workers", args->workers, "traces to read in parallel; 0 = one per core")
            .whole_number()
            .value_name("N")
            .show_default();
        flags.add("--threads", args->threads, "for map: threads per trace; 0 = one per core")
            .whole_number()
            .value_name("N")
            .show_default();
        flags.add("--matches", args->matches, "for reduce: what `match` wrote, or a folder of it").value_name("FILE");
        flags
            .add("--ranks-per-host", args->ranks_per_host,
                 "for traces that do not name their hosts: how many consecutive ranks share a machine and its clock; 0 "
                 "= unknown")
            .whole_number()
            .value_name("N")
            .show_default();
        flags.add("--price-per-hour", args->price_per_hour, "price of one GPU hour, to show what was lost")
            .between(0.0, 1e9);
        flags
            .add("--link-gb-s", args->link_gb_s,
                 "peak network bandwidth between hosts per GPU, one way, to compare with "
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

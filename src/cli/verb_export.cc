// firelane export FILE|DIR --to FORMAT -o OUT: a trace, or ranks of a job together, in the form of another tool.
#include <unistd.h>

#include <memory>
#include <string>

#include "cli/open.h"
#include "cli/output.h"
#include "cli/output_sink.h"
#include "cli/rank_export.h"
#include "cli/rank_files.h"
#include "cli/verbs.h"
#include "export/export_trace.h"
#include "model/catalog.h"

namespace firelane::cli {

namespace {

struct ExportArgs {
  std::string path;
  std::string ranks;
  exporter::ExportOptions what;
  OutputOptions output;
};

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const CatalogTable& table : catalog()) names.emplace_back(table.name);
  return names;
}

Result<int> run_export(const ExportArgs& args) {
  if (args.what.format == "perfetto" && args.output.path == "-" && ::isatty(STDOUT_FILENO) == 1) {
    return Error{"a perfetto trace is binary and not for a terminal; add -o trace.pftrace"};
  }
  const bool is_job = is_job_folder(args.path);
  FL_TRY(const std::vector<int64_t> ranks, parse_ranks(args.ranks));
  if (!is_job && !ranks.empty()) return Error{"--ranks is for a folder with the traces of a job"};
  if (is_job && args.what.format != "perfetto" && args.what.format != "chrome") {
    return Error{args.path + ": ranks of a job on one time axis are written with --to perfetto or --to chrome"};
  }
  FL_TRY(Output output, Output::open(args.output));
  OutputSink sink(output);
  exporter::ExportOptions what = args.what;
  what.gzip = args.output.path.ends_with(".gz");
  if (args.output.path != "-") what.file = args.output.path;
  if (is_job) {
    FL_TRY_VOID(export_ranks(args.path, ranks, what, sink));
  } else {
    FL_TRY(const auto trace, open_trace(args.path));
    FL_TRY_VOID(exporter::export_trace(trace->model(), what, sink));
  }
  FL_TRY_VOID(sink.result());
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb export_verb() {
  return {.name = "export",
          .sentence = "Write the trace for another tool: Chrome, Perfetto, speedscope, flame graphs, tables.",
          .examples = {"firelane export trace.json.gz --to perfetto -o trace.pftrace",
                       "firelane export traces/ --to perfetto --ranks 0,8-11 -o job.pftrace"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<ExportArgs>();
            add_trace_argument(flags, args->path);
            flags.add("--to", args->what.format, "the format; a file name that ends in .gz is compressed, too")
                .required()
                .one_of(std::vector<std::string>(exporter::kExportFormats.begin(), exporter::kExportFormats.end()));
            flags
                .add("--ranks", args->ranks,
                     "for a folder with the traces of a job: these ranks on one time axis, such as 0,3,8-11")
                .value_name("LIST");
            flags.add("--table", args->what.table, "for csv: which table").one_of(table_names());
            flags.add("--metric", args->what.metric, "for stacks: CPU time (default) or device time")
                .one_of(std::vector<std::string>(exporter::kStackMetrics.begin(), exporter::kStackMetrics.end()));
            add_file_options(flags, args->output);
            flags.check_all([args = args.get()]() -> std::optional<Flags::Wrong> {
              if (args->what.format != "csv" || !args->what.table.empty()) return std::nullopt;
              return Flags::Wrong{"--to csv", "needs --table, such as --table host_slices"};
            });
            return [args] { return run_export(*args); };
          }};
}

}  // namespace firelane::cli

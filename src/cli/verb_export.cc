// firelane export FILE --to FORMAT -o OUT: the trace in the form of another tool.
#include <unistd.h>

#include <memory>
#include <string>

#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "export/chrome.h"
#include "export/gzip_sink.h"
#include "export/perfetto.h"
#include "export/speedscope.h"
#include "export/stacks.h"
#include "export/table_files.h"

namespace firelane::cli {

namespace {

struct ExportArgs {
  std::string path;
  std::string format;
  std::string table;
  std::string metric = "self_cpu";
  OutputOptions output;
};

// The output as a sink: the first failure is kept for the end.
class OutputSink : public ByteSink {
 public:
  explicit OutputSink(Output& output) : output_(output) {}
  void write(std::string_view bytes) override {
    if (result_.ok()) result_ = output_.write(bytes);
  }
  bool failed() const override { return !result_.ok(); }
  const Result<void>& result() const { return result_; }

 private:
  Output& output_;
  Result<void> result_;
};

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const CatalogTable& table : catalog()) names.emplace_back(table.name);
  return names;
}

Result<void> write_format(const ExportArgs& args, const Model& model, ByteSink& sink) {
  if (args.format == "chrome") return export_chrome(model, sink);
  if (args.format == "perfetto") export_perfetto(model, sink);
  if (args.format == "speedscope") export_speedscope(model, sink);
  if (args.format == "stacks") {
    export_stacks(model, args.metric == "self_cpu" ? StackMetric::kSelfHost : StackMetric::kSelfDevice, sink);
  }
  if (args.format == "csv") export_csv(model, *find_catalog_table(args.table), sink);
  if (args.format == "json") export_json(model, sink);
  return {};
}

Result<int> run_export(const ExportArgs& args) {
  if (args.format == "perfetto" && args.output.path == "-" && ::isatty(STDOUT_FILENO) == 1) {
    return Error{"a perfetto trace is binary and not for a terminal; add -o trace.pftrace"};
  }
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const Model model, open_trace(args.path));
  OutputSink sink(output);
  if (args.output.path.ends_with(".gz")) {
    GzipSink gzip(sink);
    FL_TRY_VOID(write_format(args, model, gzip));
    gzip.finish();
  } else {
    FL_TRY_VOID(write_format(args, model, sink));
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
                       "firelane export trace.json.gz --to csv --table device_slices -o kernels.csv"},
          .setup = [](CLI::App& app) -> VerbBody {
            auto args = std::make_shared<ExportArgs>();
            add_trace_argument(app, args->path);
            app.add_option("--to", args->format, "the form; a file name that ends in .gz is compressed, too")
                ->required()
                ->check(CLI::IsMember(
                    std::vector<std::string>{"chrome", "perfetto", "speedscope", "stacks", "csv", "json"}));
            app.add_option("--table", args->table, "for csv: which table")->check(CLI::IsMember(table_names()));
            app.add_option("--metric", args->metric, "for stacks: time on the CPU (default) or of device work")
                ->check(CLI::IsMember(std::vector<std::string>{"self_cpu", "self_device"}));
            add_file_options(app, args->output);
            app.parse_complete_callback([args = args.get()] {
              if (args->format == "csv" && args->table.empty()) {
                throw CLI::ValidationError("--to csv", "needs --table, such as --table host_slices");
              }
            });
            return [args] { return run_export(*args); };
          }};
}

}  // namespace firelane::cli

// firelane convert FILE -o run.lane: any trace that opens as a .lane file.
#include <memory>
#include <string>

#include "cli/open.h"
#include "cli/output.h"
#include "cli/output_sink.h"
#include "cli/verbs.h"
#include "export/lane_file.h"

namespace firelane::cli {

namespace {

struct ConvertArgs {
  std::string path;
  OutputOptions output;
};

Result<int> run_convert(const ConvertArgs& args) {
  if (args.output.path == "-") return Error{"a .lane file is binary; name it: -o run.lane"};
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  OutputSink sink(output);
  FL_TRY_VOID(exporter::export_lane(trace->model(), sink));
  FL_TRY_VOID(sink.result());
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb convert_verb() {
  return {.name = "convert",
          .sentence = "Convert any trace that firelane opens to a .lane file: small, and with everything in it.",
          .examples = {"firelane convert run.sqlite -o run.lane", "firelane convert trace.json.gz -o trace.lane"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<ConvertArgs>();
            add_trace_argument(flags, args->path);
            add_file_options(flags, args->output);
            return [args] { return run_convert(*args); };
          }};
}

}  // namespace firelane::cli

// firelane inference FILE
#include <optional>

#include "analyze/verdict/inference.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/inference_report.h"

namespace firelane::cli {

namespace {

struct InferenceArgs {
  std::string path;
  std::optional<size_t> rows;
  OutputOptions output;
};

Result<int> run_inference(const InferenceArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  const size_t rows = args.rows.value_or(output.for_people() ? 10 : 0);
  FL_TRY_VOID(output.print(report::inference_report(analyze::find_inference(model), {.max_rows = rows})));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb inference_verb() {
  return {.name = "inference",
          .sentence = "Generation by a language model: prefill and decode, time to first token, per token, tokens/s.",
          .examples = {"firelane inference trace.json.gz", "firelane inference trace.json.gz --rows 0 --csv"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<InferenceArgs>();
            add_trace_argument(flags, args->path);
            flags.add("--rows", args->rows, "show this many; 0 = all (default: 10 in text and Markdown)")
                .whole_number()
                .value_name("N");
            add_report_options(flags, args->output);
            return [args] { return run_inference(*args); };
          }};
}

}  // namespace firelane::cli

// firelane memory FILE
#include <optional>

#include "analyze/compute/copies.h"
#include "analyze/memory/memory.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/memory_report.h"

namespace firelane::cli {

namespace {

struct MemoryArgs {
  std::string path;
  bool curve = false;
  std::optional<size_t> rows;
  OutputOptions output;
};

Result<int> run_memory(const MemoryArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  const size_t rows = args.rows.value_or(output.for_people() ? 10 : 0);
  FL_TRY_VOID(output.print(report::memory_report(model, analyze::memory_report(model), analyze::copy_table(model),
                                                 {.max_rows = rows, .curve = args.curve})));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb memory_verb() {
  return {.name = "memory",
          .sentence = "Where memory went: the peak and what is alive at it, steps, spikes, growth, copies, allocator.",
          .examples = {"firelane memory trace.json.gz", "firelane memory trace.json.gz --curve --json -o memory.json"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<MemoryArgs>();
            add_trace_argument(flags, args->path);
            flags.add("--curve", args->curve, "every change of allocated and reserved memory, too");
            flags.add("--rows", args->rows, "show this many; 0 = all (default: 10 in text and Markdown)")
                .whole_number()
                .value_name("N");
            add_report_options(flags, args->output);
            return [args] { return run_memory(*args); };
          }};
}

}  // namespace firelane::cli

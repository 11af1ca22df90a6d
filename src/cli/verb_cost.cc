// firelane cost FILE
#include "analyze/verdict/cost.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/cost_report.h"

namespace firelane::cli {

namespace {

struct CostArgs {
  std::string path;
  analyze::CostOptions cost;
  OutputOptions output;
};

Result<int> run_cost(const CostArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  FL_TRY_VOID(output.print(report::cost_report(analyze::cost_of(model, args.cost), args.cost)));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb cost_verb() {
  return {.name = "cost",
          .sentence = "What a step costs: energy where power was recorded, money and CO2 by your prices.",
          .examples = {"firelane cost trace.json.gz --price-per-hour 3.5",
                       "firelane cost run.lane --price-per-hour 28 --samples-per-step 256 --grams-per-kwh 300"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<CostArgs>();
            add_trace_argument(flags, args->path);
            flags.add("--price-per-hour", args->cost.price_per_hour, "of the machine, in any currency")
                .between(0.0, 1e9)
                .value_name("PRICE");
            flags.add("--grams-per-kwh", args->cost.grams_per_kwh, "CO2 of the electricity")
                .between(0.0, 1e9)
                .value_name("G");
            flags.add("--samples-per-step", args->cost.samples_per_step, "batch size of a step")
                .between(int64_t{1}, int64_t{1} << 50)
                .value_name("N");
            flags.add("--steps-per-run", args->cost.steps_per_run, "steps of the whole training")
                .between(int64_t{1}, int64_t{1} << 50)
                .value_name("N");
            flags
                .add("--overhead-factor", args->cost.overhead_factor,
                     "energy of the data centre by energy of the device (PUE)")
                .between(1.0, 10.0)
                .value_name("X");
            add_report_options(flags, args->output);
            return [args] { return run_cost(*args); };
          }};
}

}  // namespace firelane::cli

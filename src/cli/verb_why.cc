// firelane why RUN [--step N]: answers from what an always-on recording has left.
#include "always/why.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace firelane::cli {

namespace {

struct WhyArgs {
  std::string run;
  int64_t step = -1;
};

Result<int> run_why(const WhyArgs& args) {
  FL_TRY(Output output, Output::open({}));
  FL_TRY(const std::string text, always::why(args.run, args.step));
  FL_TRY_VOID(output.write(text));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb why_verb() {
  return {.name = "why",
          .sentence = "Show why a step of an always-on recording was slow, and what was kept of it.",
          .examples = {"firelane why run --step 48312", "firelane why run"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<WhyArgs>();
            flags.add("RUN", args->run, "the folder of firelane record --always; with ranks, that of one: run/rank0")
                .required();
            flags.add("--step", args->step, "the step's number; without it, the slowest steps and all incidents")
                .whole_number();
            return [args] { return run_why(*args); };
          }};
}

}  // namespace firelane::cli

// firelane explain [FINDING]
#include "advise/rule.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace firelane::cli {

namespace {

struct ExplainArgs {
  std::string id;
};

Result<int> run_explain(const ExplainArgs& args) {
  FL_TRY(Output output, Output::open({}));
  if (args.id.empty()) {
    for (const advise::Rule& rule : advise::all_rules()) {
      const std::string_view text = rule.explanation;
      const std::string first(text.substr(0, text.find('\n')));
      FL_TRY_VOID(output.write(std::string(rule.id) + "\n    " + first + "\n"));
    }
  } else {
    const advise::Rule* rule = advise::find_rule(args.id);
    if (rule == nullptr) {
      return Error{args.id + ": no such finding; firelane explain lists them"};
    }
    FL_TRY_VOID(output.write(std::string(rule->id) + "\n\n" + std::string(rule->explanation) + "\n"));
  }
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb explain_verb() {
  return {.name = "explain",
          .sentence = "What a finding of diagnose means, why it costs, what to do, and when not.",
          .examples = {"firelane explain input-bound", "firelane explain"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<ExplainArgs>();
            flags.add("FINDING", args->id, "id of a finding; without it, the list of all");
            return [args] { return run_explain(*args); };
          }};
}

}  // namespace firelane::cli

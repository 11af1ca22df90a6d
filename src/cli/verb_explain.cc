// firelane explain [FINDING]
#include <algorithm>

#include "advise/rule.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "ranks/reduce/findings.h"

namespace firelane::cli {

namespace {

struct ExplainArgs {
  std::string id;
};

// The first sentence of the explanation, on one line.
std::string summary(std::string_view explanation) {
  size_t end = 0;
  do {
    end = explanation.find('.', end + 1);
  } while (end < explanation.size() - 1 && explanation[end + 1] != ' ' && explanation[end + 1] != '\n');
  std::string sentence(explanation.substr(0, end == std::string_view::npos ? end : end + 1));
  std::replace(sentence.begin(), sentence.end(), '\n', ' ');
  return sentence;
}

Result<int> run_explain(const ExplainArgs& args) {
  FL_TRY(Output output, Output::open({}));
  if (args.id.empty()) {
    for (const advise::Rule& rule : advise::all_rules()) {
      FL_TRY_VOID(output.write(std::string(rule.id) + "\n    " + summary(rule.explanation) + "\n"));
    }
    for (const ranks::FindingText& text : ranks::rank_finding_texts()) {
      FL_TRY_VOID(output.write(std::string(text.id) + "\n    " + summary(text.explanation) + "\n"));
    }
  } else {
    for (const ranks::FindingText& text : ranks::rank_finding_texts()) {
      if (text.id != args.id) continue;
      FL_TRY_VOID(output.write(std::string(text.id) + "\n\n" + std::string(text.explanation) + "\n"));
      FL_TRY_VOID(output.close());
      return kExitOk;
    }
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
          .sentence = "Explain a finding: what it means, why it costs time, what to do about it, and when not to.",
          .examples = {"firelane explain input-bound", "firelane explain"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<ExplainArgs>();
            flags.add("FINDING", args->id, "id of a finding; without it, all findings are listed");
            return [args] { return run_explain(*args); };
          }};
}

}  // namespace firelane::cli

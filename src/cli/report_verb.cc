#include "cli/report_verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/open.h"
#include "cli/output.h"
#include "cli/rank_files.h"
#include "report/ranks_report.h"

namespace firelane::cli {

namespace {

using report::Parameter;
using report::ParameterType;

// What was given, by the parameter's name. The references that parsing writes to stay good: a map's nodes do not move.
struct ReportVerbArgs {
  std::string path;
  JoinedPaths joined;
  std::map<std::string, bool> flags;
  std::map<std::string, std::optional<std::string>> texts;
  std::map<std::string, std::vector<std::string>> lists;
  OutputOptions output;
};

std::string flag_name(const Parameter& parameter) {
  std::string name = "--" + parameter.name;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string help_of(const Parameter& parameter, const report::ReportSpec& spec) {
  if (parameter.name == report::kRows) {
    return fmt::format("{} (default: {} in text and Markdown)", parameter.help, spec.shown_rows);
  }
  const auto* fallback = std::get_if<std::string>(&parameter.fallback);
  return fallback == nullptr ? parameter.help : fmt::format("{} (default: {})", parameter.help, *fallback);
}

void add_parameter(Flags& flags, const Parameter& parameter, const report::ReportSpec& spec, ReportVerbArgs& args) {
  const std::string name = flag_name(parameter);
  const std::string help = help_of(parameter, spec);
  if (parameter.type == ParameterType::kFlag) {
    flags.add(name, args.flags[parameter.name], help);
    return;
  }
  Flag flag = parameter.type == ParameterType::kTexts ? flags.add(name, args.lists[parameter.name], help)
                                                      : flags.add(name, args.texts[parameter.name], help);
  if (!parameter.value_name.empty()) flag.value_name(parameter.value_name);
  if (!parameter.choices.empty()) {
    flag.one_of(parameter.choices);
  } else {
    flag.check([&parameter](const std::string& text) { return report::what_is_wrong(parameter, text); });
  }
}

Result<report::Arguments> arguments_of(const report::ReportSpec& spec, const ReportVerbArgs& args) {
  report::Arguments wanted = spec.arguments();
  for (const auto& [name, given] : args.flags) FL_TRY_VOID(wanted.set(name, given));
  for (const auto& [name, text] : args.texts) {
    if (text) FL_TRY_VOID(wanted.set_text(name, *text));
  }
  for (const auto& [name, list] : args.lists) FL_TRY_VOID(wanted.set(name, list));
  return wanted;
}

Result<int> run_report(const report::ReportSpec& spec, const ReportVerbArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  std::error_code error;
  if (spec.name == "diagnose" && std::filesystem::is_directory(args.path, error)) {
    FL_TRY(const auto job, open_job({args.path}));
    FL_TRY_VOID(output.write(report::ranks_text(job->result, {.findings_only = true}, output.form(), output.style())));
    FL_TRY_VOID(output.close());
    return kExitOk;
  }
  FL_TRY(report::Arguments wanted, arguments_of(spec, args));
  FL_TRY(const auto trace, open_trace(args.path, args.joined));
  FL_TRY(const std::string answer, report::render(spec, *trace, std::move(wanted), output.form(), output.style()));
  FL_TRY_VOID(output.write(answer));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb verb_of(const report::ReportSpec& spec) {
  return {.name = spec.name,
          .sentence = spec.sentence,
          .examples = spec.examples,
          .setup = [&spec](Flags& flags) -> VerbBody {
            auto args = std::make_shared<ReportVerbArgs>();
            add_trace_argument(flags, args->path);
            add_joined_options(flags, args->joined);
            for (const Parameter& parameter : spec.parameters) add_parameter(flags, parameter, spec, *args);
            add_report_options(flags, args->output);
            return [&spec, args] { return run_report(spec, *args); };
          }};
}

}  // namespace firelane::cli

#include "bind/trace/report_methods.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/trace/report_table.h"
#include "bind/trace/table.h"
#include "report/diagnose_report.h"
#include "report/registry.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

using report::Arguments;
using report::Parameter;
using report::ParameterType;
using report::PythonForm;
using report::ReportSpec;

constexpr std::string_view kTable = "table";  // of a report that has several: which one the rows are

std::string method_name(const ReportSpec& spec) {
  std::string name(spec.python_name.empty() ? spec.name : spec.python_name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool has_table_choice(const ReportSpec& spec) {
  return spec.python_form == PythonForm::kTable && spec.tables.size() > 1;
}

// typing.Literal['a', 'b']
std::string literal(const std::vector<std::string>& choices) {
  std::string text = "typing.Literal[";
  for (const std::string& each : choices) text += (text.ends_with('[') ? "'" : ", '") + each + "'";
  return text + "]";
}

std::vector<std::string> table_names(const ReportSpec& spec) {
  std::vector<std::string> names;
  for (const report::ReportTable& table : spec.tables) names.emplace_back(table.name);
  return names;
}

std::string type_of(const Parameter& parameter) {
  switch (parameter.type) {
    case ParameterType::kFlag: return "bool";
    case ParameterType::kInteger: return "int";
    case ParameterType::kNumber: return "float";
    case ParameterType::kText: return parameter.choices.empty() ? "str" : literal(parameter.choices);
    case ParameterType::kTexts:
      return "collections.abc.Sequence[" + (parameter.choices.empty() ? "str" : literal(parameter.choices)) + "]";
  }
  return "object";
}

// "sort_by: str | None = None"
std::string declaration(const Parameter& parameter) {
  std::string type = type_of(parameter);
  std::string fallback = "None";
  if (parameter.type == ParameterType::kFlag) fallback = "False";
  if (parameter.type == ParameterType::kTexts) fallback = "()";
  if (const auto* whole = std::get_if<int64_t>(&parameter.fallback)) fallback = std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&parameter.fallback))
    fallback = nb::cast<std::string>(nb::repr(nb::cast(*real)));
  if (const auto* text = std::get_if<std::string>(&parameter.fallback)) fallback = "'" + *text + "'";
  if (fallback == "None") type += " | None";
  return parameter.name + ": " + type + " = " + fallback;
}

std::string signature(const ReportSpec& spec) {
  std::string text = "def " + method_name(spec) + "(self";
  if (!spec.parameters.empty() || has_table_choice(spec)) text += ", *";
  if (has_table_choice(spec)) {
    text += ", table: " + literal(table_names(spec)) + " = '" + std::string(spec.tables[0].name) + "'";
  }
  for (const Parameter& parameter : spec.parameters) text += ", " + declaration(parameter);
  return text + ") -> " + (spec.python_form == PythonForm::kDict ? "dict[str, typing.Any]" : "Table");
}

std::string docstring(const ReportSpec& spec) {
  std::string text(spec.sentence);
  const bool is_dict = spec.python_form == PythonForm::kDict;
  text += is_dict ? "\nWhat `firelane " + std::string(spec.name) + " --json` prints."
                  : "\nprint() shows what `firelane " + std::string(spec.name) + "` prints.";
  if (has_table_choice(spec)) text += "\n\ntable: which of the report's tables the rows are";
  for (const Parameter& parameter : spec.parameters) {
    text += "\n" + (&parameter == &spec.parameters[0] && !has_table_choice(spec) ? std::string("\n") : "");
    text += parameter.name + ": " + parameter.help;
    if (parameter.name == report::kRows)
      text += " (default: all, of which print() shows " + std::to_string(spec.shown_rows) + ")";
  }
  return text;
}

[[noreturn]] void raise_value_error(const ReportSpec& spec, const std::string& message) {
  throw nb::value_error((method_name(spec) + ": " + message).c_str());
}

[[noreturn]] void raise_type_error(const ReportSpec& spec, std::string_view name, std::string_view message) {
  throw nb::type_error((method_name(spec) + "(): " + std::string(name) + " " + std::string(message)).c_str());
}

std::vector<std::string> strings_of(const ReportSpec& spec, const Parameter& parameter, nb::handle given) {
  if (nb::isinstance<nb::str>(given)) return {nb::cast<std::string>(given)};
  std::vector<std::string> texts;
  for (const nb::handle each : nb::iter(given)) {
    if (!nb::isinstance<nb::str>(each)) raise_type_error(spec, parameter.name, "is a sequence of str");
    texts.push_back(nb::cast<std::string>(each));
  }
  return texts;
}

report::Value value_of(const ReportSpec& spec, const Parameter& parameter, nb::handle given) {
  const bool is_bool = nb::isinstance<nb::bool_>(given);
  switch (parameter.type) {
    case ParameterType::kFlag:
      if (is_bool) return nb::cast<bool>(given);
      raise_type_error(spec, parameter.name, "is a bool");
    case ParameterType::kInteger: {
      int64_t whole = 0;
      if (is_bool || !nb::try_cast(given, whole)) raise_type_error(spec, parameter.name, "is an int");
      return whole;
    }
    case ParameterType::kNumber: {
      double real = 0;
      if (is_bool || !nb::try_cast(given, real)) raise_type_error(spec, parameter.name, "is a float");
      return real;
    }
    case ParameterType::kText:
      if (nb::isinstance<nb::str>(given)) return nb::cast<std::string>(given);
      raise_type_error(spec, parameter.name, "is a str");
    case ParameterType::kTexts: return strings_of(spec, parameter, given);
  }
  return {};
}

// What a call asks for: the report's arguments, and the table that its rows are to be.
struct Call {
  Arguments wanted;
  std::string table;
};

void choose_table(const ReportSpec& spec, std::string name, Call& call) {
  for (const report::ReportTable& each : spec.tables) {
    if (each.name != name) continue;
    if (!each.flag.empty()) (void)call.wanted.set(each.flag, true);
    call.table = std::move(name);
    return;
  }
  std::string choices;
  for (const std::string& each : table_names(spec)) choices += (choices.empty() ? "" : ", ") + each;
  raise_value_error(spec, "table must be one of " + choices);
}

Call call_of(const ReportSpec& spec, const nb::dict& given) {
  Call call{.wanted = spec.arguments(), .table = spec.tables.empty() ? "" : std::string(spec.tables[0].name)};
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (name == kTable && has_table_choice(spec)) {
      if (!nb::isinstance<nb::str>(value)) raise_type_error(spec, name, "is a str");
      choose_table(spec, nb::cast<std::string>(value), call);
      continue;
    }
    const auto parameter = std::find_if(spec.parameters.begin(), spec.parameters.end(),
                                        [&](const Parameter& each) { return each.name == name; });
    if (parameter == spec.parameters.end()) raise_type_error(spec, name, "is not one of its keyword arguments");
    const bool may_be_none = declaration(*parameter).ends_with("= None");
    if (value.is_none() && may_be_none) continue;
    const Result<void> set = call.wanted.set(name, value_of(spec, *parameter, value));
    if (!set.ok()) raise_value_error(spec, set.error().message);
  }
  return call;
}

template <typename T>
T value_or_raise_argument(const ReportSpec& spec, Result<T> result) {
  if (!result.ok()) raise_value_error(spec, result.error().message);
  return std::move(result).value();
}

Table table_answer(const ReportSpec& spec, const Trace& trace, const Call& call) {
  const nb::gil_scoped_release release_gil;
  if (const std::string reason = report::why_not(spec, *trace.model); !reason.empty()) raise_value_error(spec, reason);
  report::Report all = value_or_raise_argument(spec, report::make_report(spec, *trace.studied, call.wanted));
  std::string text =
      value_or_raise_argument(spec, report::render(spec, *trace.studied, call.wanted, report::Form::kText));
  const auto wanted = std::find_if(all.tables.begin(), all.tables.end(),
                                   [&](const report::Table& each) { return each.name == call.table; });
  report::Table rows = wanted == all.tables.end() ? report::Table{} : std::move(*wanted);
  rows.name = call.table == spec.tables[0].name ? method_name(spec) : call.table;
  auto arrow = arrow_table(rows);
  all.tables = {std::move(rows)};
  return {std::move(arrow), std::make_shared<const ForPeople>(ForPeople{std::move(all), std::move(text)})};
}

nb::object dict_answer(const ReportSpec& spec, const Trace& trace, const Call& call) {
  std::string json;
  {
    const nb::gil_scoped_release release_gil;
    json = value_or_raise_argument(spec, report::render(spec, *trace.studied, call.wanted, report::Form::kJson));
  }
  return parse_json(json);
}

void bind_method(nb::class_<Trace>& trace, const ReportSpec& spec) {
  const std::string name = method_name(spec);
  const std::string text = signature(spec);
  const std::string doc = docstring(spec);
  if (spec.python_form == PythonForm::kTable) {
    trace.def(
        name.c_str(),
        [&spec](const Trace& self, const nb::kwargs& given) { return table_answer(spec, self, call_of(spec, given)); },
        nb::sig(text.c_str()), doc.c_str());
  } else if (spec.parameters.empty()) {
    trace.def_prop_ro(
        name.c_str(), [&spec](const Trace& self) { return dict_answer(spec, self, call_of(spec, nb::dict())); },
        nb::sig(text.c_str()), doc.c_str());
  } else {
    trace.def(
        name.c_str(),
        [&spec](const Trace& self, const nb::kwargs& given) { return dict_answer(spec, self, call_of(spec, given)); },
        nb::sig(text.c_str()), doc.c_str());
  }
}

// For `firelane record`, which ends with it.
std::string short_verdict(const Trace& trace, bool color) {
  const nb::gil_scoped_release release_gil;
  return report::short_diagnosis(*trace.studied, {.style = {.color = color}});
}

nb::object diagnosis(const Trace& trace) {
  std::string json;
  {
    const nb::gil_scoped_release release_gil;
    json = report::diagnosis_json(*trace.studied);
  }
  return parse_json(json);
}

}  // namespace

void bind_report_methods(nb::class_<Trace>& trace) {
  for (const ReportSpec& spec : report::all_reports()) bind_method(trace, spec);
  trace.def_prop_ro("diagnosis", &diagnosis, nb::sig("def diagnosis(self) -> dict[str, typing.Any]"),
                    "The verdict with the evidence of each finding: what `firelane diagnose --json` prints.");
  trace.def("_short_verdict", &short_verdict, nb::kw_only(), nb::arg("color") = false);
}

}  // namespace firelane::bind_trace

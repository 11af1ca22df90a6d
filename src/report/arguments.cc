#include "report/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace firelane::report {

namespace {

template <typename T>
bool parse_whole(std::string_view text, T& out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
}

// "a whole number from 0 to 100"
std::string wanted_number(const Parameter& parameter) {
  const char* what = parameter.type == ParameterType::kInteger ? "a whole number" : "a number";
  return fmt::format("must be {} from {:.0f} to {:.0f}", what, parameter.low, parameter.high);
}

bool is_in_range(const Parameter& parameter, double number) {
  return std::isfinite(number) && number >= parameter.low && number <= parameter.high;
}

Value fallback_of(const Parameter& parameter) {
  if (!std::holds_alternative<std::monostate>(parameter.fallback)) return parameter.fallback;
  if (parameter.type == ParameterType::kFlag) return false;
  if (parameter.type == ParameterType::kTexts) return std::vector<std::string>{};
  return {};
}

std::string wrong_text(const Parameter& parameter, std::string_view text) {
  const auto& choices = parameter.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
    return fmt::format("must be one of {}", fmt::join(choices, ", "));
  }
  return parameter.check == nullptr ? "" : parameter.check(text);
}

// What is wrong with a value that has the parameter's type.
std::string wrong_value(const Parameter& parameter, const Value& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    return is_in_range(parameter, static_cast<double>(*whole)) ? "" : wanted_number(parameter);
  }
  if (const auto* real = std::get_if<double>(&value))
    return is_in_range(parameter, *real) ? "" : wanted_number(parameter);
  if (const auto* text = std::get_if<std::string>(&value)) return wrong_text(parameter, *text);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const std::string& each : *texts) {
      if (std::string wrong = wrong_text(parameter, each); !wrong.empty()) return wrong;
    }
  }
  return "";
}

// Nothing when the text cannot be read as the parameter's type.
Value parsed(const Parameter& parameter, std::string_view text) {
  int64_t whole = 0;
  double real = 0;
  switch (parameter.type) {
    case ParameterType::kFlag:
      if (text == "0" || text == "1") return text == "1";
      return {};
    case ParameterType::kInteger:
      if (parse_whole(text, whole)) return whole;
      return {};
    case ParameterType::kNumber:
      if (parse_whole(text, real)) return real;
      return {};
    case ParameterType::kText: return std::string(text);
    case ParameterType::kTexts: return std::vector<std::string>{std::string(text)};
  }
  return {};
}

}  // namespace

Parameter Parameter::flag(std::string name, std::string help) {
  return {.name = std::move(name), .type = ParameterType::kFlag, .help = std::move(help)};
}

Parameter Parameter::integer(std::string name, int64_t low, int64_t high, std::string help) {
  return {.name = std::move(name),
          .type = ParameterType::kInteger,
          .help = std::move(help),
          .value_name = "N",
          .low = static_cast<double>(low),
          .high = static_cast<double>(high)};
}

Parameter Parameter::number(std::string name, double low, double high, std::string value_name, std::string help) {
  return {.name = std::move(name),
          .type = ParameterType::kNumber,
          .help = std::move(help),
          .value_name = std::move(value_name),
          .low = low,
          .high = high};
}

Parameter Parameter::choice(std::string name, std::vector<std::string> choices, std::string help) {
  const std::string first = choices.front();
  return {.name = std::move(name),
          .type = ParameterType::kText,
          .help = std::move(help),
          .fallback = first,
          .choices = std::move(choices)};
}

Parameter Parameter::rows() { return integer(std::string(kRows), 0, 1'000'000'000, "show at most this many; 0 = all"); }

std::string what_is_wrong(const Parameter& parameter, std::string_view text) {
  const Value value = parsed(parameter, text);
  if (!std::holds_alternative<std::monostate>(value)) return wrong_value(parameter, value);
  return parameter.type == ParameterType::kFlag ? "must be 0 or 1" : wanted_number(parameter);
}

Arguments::Arguments(const std::vector<Parameter>& parameters, size_t shown_rows)
    : parameters_(&parameters), shown_rows_(shown_rows) {
  for (const Parameter& each : parameters) values_.emplace(each.name, fallback_of(each));
}

const Parameter* Arguments::find(std::string_view name) const {
  const auto found =
      std::find_if(parameters_->begin(), parameters_->end(), [&](const Parameter& each) { return each.name == name; });
  return found == parameters_->end() ? nullptr : &*found;
}

Result<void> Arguments::set(std::string_view name, Value value) {
  const Parameter* parameter = find(name);
  if (parameter == nullptr) return Error{fmt::format("there is no parameter '{}'", name)};
  if (const std::string wrong = wrong_value(*parameter, value); !wrong.empty()) {
    return Error{fmt::format("{} {}", name, wrong)};
  }
  auto* texts = std::get_if<std::vector<std::string>>(&value);
  Value& kept = values_.find(name)->second;
  if (texts == nullptr) {
    kept = std::move(value);
  } else {
    auto& all = std::get<std::vector<std::string>>(kept);
    all.insert(all.end(), texts->begin(), texts->end());
  }
  return {};
}

Result<void> Arguments::set_text(std::string_view name, std::string_view text) {
  const Parameter* parameter = find(name);
  if (parameter == nullptr) return Error{fmt::format("there is no parameter '{}'", name)};
  if (const std::string wrong = what_is_wrong(*parameter, text); !wrong.empty()) {
    return Error{fmt::format("{} {}", name, wrong)};
  }
  return set(name, parsed(*parameter, text));
}

const Value& Arguments::value(std::string_view name) const {
  const auto found = values_.find(name);
  FL_CHECK(found != values_.end(), "Arguments: the report declares every parameter that it reads");
  return found->second;
}

bool Arguments::is_given(std::string_view name) const { return !std::holds_alternative<std::monostate>(value(name)); }

size_t Arguments::rows() const {
  if (find(kRows) != nullptr && is_given(kRows)) return static_cast<size_t>(integer(kRows));
  return for_people ? shown_rows_ : 0;
}

}  // namespace firelane::report

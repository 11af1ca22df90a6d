#include "cli/variables.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace firelane::cli {

namespace {

constexpr size_t kMostValues = 1000;

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<std::vector<std::string>> parse_range(const std::string& text, size_t dots) {
  const Error wrong{"--var: " + text + " is no range; write 0..8, 0..64+8 or 1..64*2"};
  const size_t step_at = text.find_first_of("+*", dots);
  const auto low = whole_number(std::string_view(text).substr(0, dots));
  const auto high = whole_number(
      std::string_view(text).substr(dots + 2, step_at == std::string::npos ? std::string::npos : step_at - dots - 2));
  const auto step = step_at == std::string::npos ? std::optional<int64_t>(1)
                                                 : whole_number(std::string_view(text).substr(step_at + 1));
  if (!low || !high || !step || *high < *low) return wrong;
  const bool multiplies = step_at != std::string::npos && text[step_at] == '*';
  if (multiplies ? *step < 2 || *low < 1 : *step < 1) return wrong;
  std::vector<std::string> values;
  for (int64_t value = *low; value <= *high && values.size() <= kMostValues;) {
    values.push_back(std::to_string(value));
    if (multiplies ? value > *high / *step : value > *high - *step) break;
    value = multiplies ? value * *step : value + *step;
  }
  return values;
}

Result<std::vector<std::string>> parse_values(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots != std::string::npos && text.find(',') == std::string::npos) return parse_range(text, dots);
  std::vector<std::string> values;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    values.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return values;
}

}  // namespace

Result<Variable> parse_variable(const std::string& text) {
  const Error wrong{"--var " + text +
                    ": write NAME=--flag:VALUES or NAME=env:VARIABLE:VALUES, as in batch=--batch-size:8,16,32"};
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return wrong;
  Variable out{.name = text.substr(0, equals)};
  std::string rest = text.substr(equals + 1);
  const bool is_environment = rest.starts_with("env:");
  if (is_environment) rest = rest.substr(4);
  const size_t colon = rest.find(':');
  if (colon == std::string::npos || colon == 0) return wrong;
  (is_environment ? out.environment : out.flag) = rest.substr(0, colon);
  if (!is_environment && !out.flag.starts_with("-")) return wrong;
  FL_TRY(out.values, parse_values(rest.substr(colon + 1)));
  if (out.values.size() > kMostValues) return Error{"--var " + out.name + ": more than 1000 values"};
  if (std::any_of(out.values.begin(), out.values.end(), [](const std::string& value) { return value.empty(); })) {
    return wrong;
  }
  return out;
}

Result<std::vector<Variable>> parse_variables(const std::vector<std::string>& texts) {
  std::vector<Variable> out;
  size_t points = 1;
  for (const std::string& text : texts) {
    FL_TRY(Variable variable, parse_variable(text));
    for (const Variable& other : out) {
      if (other.name == variable.name) return Error{"--var " + variable.name + " is given twice"};
    }
    points *= variable.values.size();
    if (points > 10'000) return Error{"--var: more than 10,000 points; give fewer values"};
    out.push_back(std::move(variable));
  }
  return out;
}

std::vector<Point> all_points(const std::vector<Variable>& variables) {
  std::vector<Point> out = {{}};
  for (const Variable& variable : variables) {
    std::vector<Point> longer;
    for (const Point& point : out) {
      for (const std::string& value : variable.values) {
        longer.push_back(point);
        longer.back().push_back(value);
      }
    }
    out = std::move(longer);
  }
  return out;
}

std::string name_of(const std::vector<Variable>& variables, const Point& point) {
  std::string out;
  for (size_t i = 0; i < variables.size(); ++i) out += (i == 0 ? "" : ", ") + variables[i].name + "=" + point[i];
  return out;
}

PointCommand command_at(const std::vector<std::string>& command, const std::vector<Variable>& variables,
                        const Point& point) {
  PointCommand out{.words = command};
  for (size_t i = 0; i < variables.size(); ++i) {
    const Variable& variable = variables[i];
    if (variable.flag.empty()) {
      out.environment.emplace_back(variable.environment, point[i]);
      continue;
    }
    bool found = false;
    for (size_t w = 1; w < out.words.size() && !found; ++w) {
      if (out.words[w] == variable.flag && w + 1 < out.words.size()) {
        out.words[w + 1] = point[i];
        found = true;
      } else if (out.words[w].starts_with(variable.flag + "=")) {
        out.words[w] = variable.flag + "=" + point[i];
        found = true;
      }
    }
    if (!found) out.words.insert(out.words.end(), {variable.flag, point[i]});
  }
  return out;
}

}  // namespace firelane::cli

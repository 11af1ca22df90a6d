// What a report can be asked for, declared once: the command's flags, the server's parameters and Python's keyword
// arguments are made from a report's list of Parameters, and all three give the values back as Arguments.
//
//   Arguments wanted(parameters);
//   FL_TRY_VOID(wanted.set_text("sort_by", "calls"));   // checked; the Error says what sort_by must be
//   wanted.text("sort_by")
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace firelane::report {

enum class ParameterType : uint8_t { kFlag, kInteger, kNumber, kText, kTexts };

using Value = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<std::string>>;

struct Parameter {
  std::string name;  // snake_case: Python's keyword and the server's parameter; the command's flag has dashes
  ParameterType type = ParameterType::kFlag;
  std::string help;          // begins in lower case and has no full stop
  std::string value_name{};  // for the command's help: "N"
  Value fallback{};          // when it is not given; monostate: then there is no value. A flag is false, texts are none
  double low = 0, high = 0;  // of numbers, both included
  std::vector<std::string> choices{};  // of texts; empty = any
  // For texts that have a form: what is wrong with one ("must be ..."), "" when nothing is.
  std::string (*check)(std::string_view text) = nullptr;
  bool text_only = false;  // changes how people see the answer, not what is in it: not a parameter of the server

  static Parameter flag(std::string name, std::string help);
  static Parameter integer(std::string name, int64_t low, int64_t high, std::string help);
  static Parameter number(std::string name, double low, double high, std::string value_name, std::string help);
  // The first of `choices` when it is not given.
  static Parameter choice(std::string name, std::vector<std::string> choices, std::string help);
  // At most so many rows of each table; 0 = all. Arguments::rows() is what applies.
  static Parameter rows();
};

inline constexpr std::string_view kRows = "rows";

// What is wrong with `text`: "must be a whole number from 0 to 100"; "" when nothing is.
std::string what_is_wrong(const Parameter& parameter, std::string_view text);

class Arguments {
 public:
  // Kept by reference: reports are declared for as long as the program runs. `shown_rows` is how many rows people see
  // unless they say otherwise; 0 = all.
  explicit Arguments(const std::vector<Parameter>& parameters, size_t shown_rows = 0);

  // An Error says which parameter is wrong and what it must be. A second text of a list is added to it.
  Result<void> set_text(std::string_view name, std::string_view text);
  // REQUIRES: a value of the parameter's type.
  Result<void> set(std::string_view name, Value value);

  // REQUIRES: a parameter of that name and type; for integer() and text() that it is given or has a fallback.
  bool is_given(std::string_view name) const;  // or has a fallback
  bool flag(std::string_view name) const { return std::get<bool>(value(name)); }
  int64_t integer(std::string_view name) const { return std::get<int64_t>(value(name)); }
  int64_t integer_or(std::string_view name, int64_t absent) const { return is_given(name) ? integer(name) : absent; }
  double number(std::string_view name) const { return std::get<double>(value(name)); }
  double number_or(std::string_view name, double absent) const { return is_given(name) ? number(name) : absent; }
  const std::string& text(std::string_view name) const { return std::get<std::string>(value(name)); }
  const std::vector<std::string>& texts(std::string_view name) const {
    return std::get<std::vector<std::string>>(value(name));
  }
  // At most so many rows of each table: as given, else all for programs and `shown_rows` for people. 0 = all.
  size_t rows() const;

  // For text and Markdown: the top rows, what they leave out summed up. Programs get everything.
  bool for_people = false;

 private:
  const Parameter* find(std::string_view name) const;
  const Value& value(std::string_view name) const;

  const std::vector<Parameter>* parameters_;
  size_t shown_rows_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace firelane::report

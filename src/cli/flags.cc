#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace firelane::cli {

Flag& Flag::required() {
  option_->required();
  return *this;
}

Flag& Flag::value_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Flag& Flag::show_default() {
  option_->capture_default_str();
  return *this;
}

Flag& Flag::excludes(const std::string& other) {
  option_->excludes(other);
  return *this;
}

Flag& Flag::needs(const std::string& other) {
  option_->needs(other);
  return *this;
}

Flag& Flag::joined() {
  option_->join('\n');  // not ',': of "--flag=," nothing would be left to check
  return *this;
}

Flag& Flag::once_each() {
  option_->take_all()->allow_extra_args(false);
  return *this;
}

Flag& Flag::one_of(const std::vector<std::string>& choices) {
  option_->check(CLI::IsMember(choices));
  return *this;
}

Flag& Flag::between(double low, double high) {
  option_->check(CLI::Range(low, high));
  // Which is what CLI11 takes for within any range.
  return check([low, high](const std::string& text) -> std::string {
    if (!std::isnan(std::strtod(text.c_str(), nullptr))) return "";
    return "Value " + text + " not in range " + CLI::detail::to_string(low) + " to " + CLI::detail::to_string(high);
  });
}

Flag& Flag::between(int64_t low, int64_t high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Flag& Flag::whole_number() {
  return check([](const std::string& text) -> std::string {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return digits ? "" : "'" + text + "' is not a whole number of 0 or more";
  });
}

Flag& Flag::check(std::function<std::string(const std::string&)> what_is_wrong) {
  option_->check(std::move(what_is_wrong));
  return *this;
}

Flag Flags::add(const std::string& names, bool& value, const std::string& help) {
  return Flag(app_.add_flag(names, value, help));
}

Flag Flags::add(const std::string& names, std::string& value, const std::string& help) {
  return Flag(app_.add_option(names, value, help));
}

Flag Flags::add(const std::string& names, std::vector<std::string>& value, const std::string& help) {
  return Flag(app_.add_option(names, value, help));
}

Flag Flags::add(const std::string& names, double& value, const std::string& help) {
  return Flag(app_.add_option(names, value, help));
}

Flag Flags::add(const std::string& names, int& value, const std::string& help) {
  return Flag(app_.add_option(names, value, help));
}

Flag Flags::add(const std::string& names, int64_t& value, const std::string& help) {
  return Flag(app_.add_option(names, value, help));
}

Flag Flags::add(const std::string& names, uint32_t& value, const std::string& help) {
  return Flag(app_.add_option(names, value, help));
}

Flag Flags::add(const std::string& names, size_t& value, const std::string& help) {
  return Flag(app_.add_option(names, value, help));
}

Flag Flags::add(const std::string& names, std::optional<std::string>& value, const std::string& help) {
  return Flag(app_.add_option(names, value, help));
}

// As an option, CLI11 would take the -- behind it for the end of its values.
Flag Flags::add_with_optional_value(const std::string& name, std::string& value, const std::string& help) {
  return Flag(app_.add_flag(name, value, help));
}

void Flags::check_all(std::function<std::optional<Wrong>()> what_is_wrong) {
  app_.parse_complete_callback([what_is_wrong = std::move(what_is_wrong)] {
    if (const std::optional<Wrong> wrong = what_is_wrong()) throw CLI::ValidationError(wrong->flags, wrong->reason);
  });
}

}  // namespace firelane::cli

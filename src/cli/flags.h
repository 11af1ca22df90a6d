// The flags of one verb. A thin front over CLI11, which is one large header: read by the three files that need it
// whole, not by every verb (that was a fifth of the build).
//
//   flags.add("--rows", args->rows, "show this many; 0 = all").whole_number().value_name("N");
//
// Wrong values are refused while parsing, which is exit 2.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace firelane::cli {

class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag& required();
  Flag& value_name(const std::string& name);  // what --help calls the value; "" for none
  Flag& show_default();
  Flag& excludes(const std::string& other);
  Flag& needs(const std::string& other);  // which was added before
  Flag& joined();                         // given several times: all values, one a line
  Flag& once_each();                      // a list: each value with its own flag
  Flag& one_of(const std::vector<std::string>& choices);
  Flag& between(double low, double high);
  Flag& between(int64_t low, int64_t high);
  Flag& whole_number();  // digits only (CLI11 would read -5 as a huge number)
  // `what_is_wrong` of a value, "" when nothing is.
  Flag& check(std::function<std::string(const std::string&)> what_is_wrong);

 private:
  CLI::Option* option_;
};

// `names` is "--rows", "-o,--output", or "FILE" for a word without a flag. Values live as long as the verb's body.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  Flag add(const std::string& names, bool& value, const std::string& help);
  Flag add(const std::string& names, std::string& value, const std::string& help);
  Flag add(const std::string& names, std::vector<std::string>& value, const std::string& help);
  Flag add(const std::string& names, double& value, const std::string& help);
  Flag add(const std::string& names, int& value, const std::string& help);
  Flag add(const std::string& names, int64_t& value, const std::string& help);
  Flag add(const std::string& names, uint32_t& value, const std::string& help);
  Flag add(const std::string& names, size_t& value, const std::string& help);
  Flag add(const std::string& names, std::optional<std::string>& value, const std::string& help);

  // --metrics, whose value is "true" then, or --metrics=LIST.
  Flag add_with_optional_value(const std::string& name, std::string& value, const std::string& help);

  // After parsing: `what_is_wrong` with the flags together, or nothing.
  struct Wrong {
    std::string flags;
    std::string reason;
  };
  void check_all(std::function<std::optional<Wrong>()> what_is_wrong);

 private:
  CLI::App& app_;
};

}  // namespace firelane::cli

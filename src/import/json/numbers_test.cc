#include "import/json/numbers.h"

#include <gtest/gtest.h>

#include <string>

namespace firelane::importer {
namespace {

std::string time_of(std::string_view token) {
  int64_t ns = 0;
  switch (read_time_ns(token, ns)) {
    case NumberState::kAbsent: return "absent";
    case NumberState::kOutOfRange: return "out of range";
    case NumberState::kOk: return std::to_string(ns);
  }
  return "";
}

TEST(ReadTime, microseconds_with_decimals_become_exact_nanoseconds) {
  EXPECT_EQ(time_of("3853369486268.093"), "3853369486268093");
  EXPECT_EQ(time_of("1790857026123456.789"), "1790857026123456789");  // Unix time: beyond a double's digits
  EXPECT_EQ(time_of("0.5"), "500");
  EXPECT_EQ(time_of("7"), "7000");
  EXPECT_EQ(time_of("-1.25"), "-1250");
  EXPECT_EQ(time_of("1.0005"), "1001");  // rounded
  EXPECT_EQ(time_of("1.00049999"), "1000");
  EXPECT_EQ(time_of("12."), "12000");
  EXPECT_EQ(time_of("\"42.5\""), "42500");
  EXPECT_EQ(time_of("1.5e3"), "1500000");
  EXPECT_EQ(time_of("9100000000000000"), "9100000000000000000");
}

TEST(ReadTime, what_is_no_number_is_absent_and_too_much_is_out_of_range) {
  EXPECT_EQ(time_of(""), "absent");
  EXPECT_EQ(time_of("null"), "absent");
  EXPECT_EQ(time_of("\"\""), "absent");
  EXPECT_EQ(time_of("12x"), "absent");
  EXPECT_EQ(time_of("-"), "absent");
  EXPECT_EQ(time_of("1e300"), "out of range");
  EXPECT_EQ(time_of("1e999"), "out of range");
  EXPECT_EQ(time_of("99999999999999999999999999"), "out of range");
}

}  // namespace
}  // namespace firelane::importer

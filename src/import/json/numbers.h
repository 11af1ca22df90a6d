// Numbers as traces write them, read from their text: microseconds with decimals into exact
// nanoseconds (a double has too few digits for Unix time), ids into int64. Each accepts a
// quoted number too, since some exporters write those.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace firelane::importer {

enum class NumberState : uint8_t { kOk, kAbsent, kOutOfRange };

inline std::string_view strip_quotes(std::string_view token) {
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') return token.substr(1, token.size() - 2);
  return token;
}

// "3853369486268.093" (us) -> 3853369486268093 (ns); more than three decimals are rounded.
// Values beyond +-9.2e18 ns are out of range; what is no number is absent.
inline NumberState read_time_ns(std::string_view token, int64_t& ns) {
  token = strip_quotes(token);
  const char* p = token.data();
  const char* const end = p + token.size();
  const bool negative = p != end && *p == '-';
  if (negative) ++p;
  const char* const first = p;
  uint64_t value = 0;
  while (p != end && static_cast<unsigned>(*p - '0') < 10) {
    if (value >= 900'000'000'000'000) break;  // next digit could leave the range; the slow way decides
    value = value * 10 + static_cast<unsigned>(*p++ - '0');
  }
  if (p == first) return NumberState::kAbsent;
  if (p == end || *p == '.') {
    value *= 1000;
    if (p != end) {
      ++p;
      unsigned scale = 100;
      while (p != end && static_cast<unsigned>(*p - '0') < 10 && scale > 0) {
        value += scale * static_cast<unsigned>(*p++ - '0');
        scale /= 10;
      }
      if (p != end && scale == 0 && *p >= '5' && *p <= '9') ++value;
      while (p != end && static_cast<unsigned>(*p - '0') < 10) ++p;
    }
    if (p == end) {
      ns = negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
      return NumberState::kOk;
    }
  }
  // An exponent, or many digits: through long double, which has 64 bits of them.
  double micros = 0;
  const auto parsed = std::from_chars(token.data(), end, micros);
  if (parsed.ec == std::errc::result_out_of_range) return NumberState::kOutOfRange;
  if (parsed.ec != std::errc{} || parsed.ptr != end || std::isnan(micros)) return NumberState::kAbsent;
  if (std::fabs(micros) >= 9.2e15) return NumberState::kOutOfRange;
  ns = std::llround(static_cast<long double>(micros) * 1000);
  return NumberState::kOk;
}

inline NumberState read_int(std::string_view token, int64_t& number) {
  token = strip_quotes(token);
  const char* const end = token.data() + token.size();
  const auto parsed = std::from_chars(token.data(), end, number);
  if (parsed.ec == std::errc{} && parsed.ptr == end) return NumberState::kOk;
  double real = 0;
  const auto as_real = std::from_chars(token.data(), end, real);
  if (as_real.ec == std::errc::result_out_of_range) return NumberState::kOutOfRange;
  if (as_real.ec != std::errc{} || as_real.ptr != end || std::isnan(real)) return NumberState::kAbsent;
  if (std::fabs(real) >= 9.2e18) return NumberState::kOutOfRange;
  number = static_cast<int64_t>(real);
  return NumberState::kOk;
}

inline NumberState read_real(std::string_view token, double& number) {
  token = strip_quotes(token);
  const char* const end = token.data() + token.size();
  const auto parsed = std::from_chars(token.data(), end, number);
  if (parsed.ec == std::errc::result_out_of_range) return NumberState::kOutOfRange;
  return parsed.ec == std::errc{} && parsed.ptr == end && std::isfinite(number) ? NumberState::kOk
                                                                                : NumberState::kAbsent;
}

inline bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// "[1, 2, 3]" into three numbers; what is missing stays.
inline void read_triple(std::string_view token, int32_t& x, int32_t& y, int32_t& z) {
  if (!token.starts_with('[')) return;
  size_t at = 1;
  for (int32_t* number : {&x, &y, &z}) {
    while (at < token.size() && (is_json_space(token[at]) || token[at] == ',' || token[at] == '"')) ++at;
    const auto parsed = std::from_chars(token.data() + at, token.data() + token.size(), *number);
    if (parsed.ec != std::errc{}) return;
    at = static_cast<size_t>(parsed.ptr - token.data());
  }
}

inline int32_t to_int32(int64_t number) { return number < 0 || number > INT32_MAX ? -1 : static_cast<int32_t>(number); }

// The 12 of "train.py:12"; -1 if there is none. The file is that of the Python function around it.
inline int32_t line_of(std::string_view call_from) {
  const size_t colon = call_from.rfind(':');
  int64_t line = -1;
  if (colon == std::string_view::npos || read_int(call_from.substr(colon + 1), line) != NumberState::kOk) return -1;
  return line > 0 ? to_int32(line) : -1;
}

}  // namespace firelane::importer

#include "serve/request.h"

#include <charconv>
#include <cmath>

namespace firelane::serve {

namespace {

constexpr size_t kMaxTargetBytes = 8192;
constexpr size_t kMaxParameters = 64;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Calls fn with each part between separators; stops when fn says false.
template <typename Fn>
bool split(std::string_view text, char separator, const Fn& fn) {
  while (true) {
    const size_t end = text.find(separator);
    if (!fn(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
bool parse_whole(std::string_view text, T& out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
}

}  // namespace

const std::string* Request::find(std::string_view name) const {
  for (const auto& [key, value] : parameters) {
    if (key == name) return &value;
  }
  return nullptr;
}

Result<Request> parse_target(std::string_view target) {
  if (target.size() > kMaxTargetBytes) return Error{"the address is longer than 8192 bytes"};
  if (!target.starts_with('/')) return Error{"the address does not begin with /"};
  target = target.substr(0, target.find('#'));
  const size_t question = target.find('?');
  Request request;
  const bool path_is_good = split(target.substr(1, question - 1), '/', [&](std::string_view part) {
    auto text = decoded(part, false);
    if (text) request.path.push_back(std::move(*text));
    return text.has_value();
  });
  if (!path_is_good) return Error{"the address has a broken %XX"};
  if (question == std::string_view::npos) return request;
  const bool parameters_are_good = split(target.substr(question + 1), '&', [&](std::string_view part) {
    if (part.empty()) return true;
    const size_t equals = part.find('=');
    auto name = decoded(part.substr(0, equals), true);
    auto value = decoded(equals == std::string_view::npos ? "" : part.substr(equals + 1), true);
    if (!name || !value || request.parameters.size() == kMaxParameters) return false;
    request.parameters.emplace_back(std::move(*name), std::move(*value));
    return true;
  });
  if (!parameters_are_good) return Error{"the address has a broken %XX or more than 64 parameters"};
  return request;
}

int64_t Parameters::integer(std::string_view name, int64_t absent, int64_t low, int64_t high) {
  const std::string* text = request_.find(name);
  if (text == nullptr) return absent;
  int64_t value = 0;
  if (parse_whole(*text, value) && value >= low && value <= high) return value;
  complain(name, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return absent;
}

double Parameters::number(std::string_view name, double absent, double low, double high) {
  const std::string* text = request_.find(name);
  if (text == nullptr) return absent;
  double value = 0;
  if (parse_whole(*text, value) && std::isfinite(value) && value >= low && value <= high) return value;
  complain(name, "a number from " + std::to_string(low) + " to " + std::to_string(high));
  return absent;
}

bool Parameters::truth(std::string_view name) { return integer(name, 0, 0, 1) == 1; }

std::string Parameters::text(std::string_view name, std::string_view absent) {
  const std::string* text = request_.find(name);
  return text == nullptr ? std::string(absent) : *text;
}

size_t Parameters::choice(std::string_view name, const std::vector<std::string_view>& choices) {
  const std::string* text = request_.find(name);
  if (text == nullptr) return 0;
  std::string all;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (*text == choices[i]) return i;
    all += (i == 0 ? "" : ", ") + std::string(choices[i]);
  }
  complain(name, "one of " + all);
  return 0;
}

std::optional<std::vector<int64_t>> Parameters::list(std::string_view name, size_t most, int64_t high) {
  const std::string* text = request_.find(name);
  if (text == nullptr) return std::nullopt;
  std::vector<int64_t> out;
  if (text->empty()) return out;
  const bool good = split(*text, ',', [&](std::string_view part) {
    int64_t value = 0;
    if (!parse_whole(part, value) || value < 0 || value > high || out.size() == most) return false;
    out.push_back(value);
    return true;
  });
  if (!good) {
    complain(name,
             "at most " + std::to_string(most) + " numbers from 0 to " + std::to_string(high) + " separated by commas");
  }
  return out;
}

void Parameters::complain(std::string_view name, std::string_view wanted) {
  if (complaint_.empty()) complaint_ = std::string(name) + " must be " + std::string(wanted);
}

}  // namespace firelane::serve

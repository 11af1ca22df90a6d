#include "analyze/ops/op_inputs.h"

#include <algorithm>
#include <charconv>

namespace firelane::analyze {

namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool eat(char c) {
    skip_space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool eat_word(std::string_view word) {
    skip_space();
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool eat_number(int64_t& number) {
    skip_space();
    const auto [next, error] = std::from_chars(at_, end_, number);
    if (error != std::errc()) return false;
    at_ = next;
    return true;
  }
  bool eat_string(std::string& out) {
    if (!eat('"')) return false;
    out.clear();
    for (; at_ != end_; ++at_) {
      if (*at_ == '"') {
        ++at_;
        return true;
      }
      if (*at_ == '\\' && at_ + 1 != end_) ++at_;
      out += *at_;
    }
    return false;
  }
  // Steps over an opened list, whatever is inside; its '[' is already eaten.
  void leave_list() {
    for (int depth = 1; at_ != end_ && depth > 0; ++at_) depth += *at_ == '[' ? 1 : *at_ == ']' ? -1 : 0;
  }
  bool at_end() {
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

std::vector<Dims> parse_input_dims(std::string_view json) {
  std::vector<Dims> inputs;
  Scanner in(json);
  if (!in.eat('[')) return inputs;
  while (in.eat('[')) {
    Dims dims;
    if (in.eat('[')) {  // a list of tensors
      in.leave_list();
      in.leave_list();
    } else {
      for (int64_t dim = 0; in.eat_number(dim); in.eat(',')) dims.push_back(dim);
      if (!in.eat(']')) return inputs;
    }
    inputs.push_back(std::move(dims));
    in.eat(',');
  }
  return inputs;
}

std::vector<std::string> parse_input_strings(std::string_view json) {
  std::vector<std::string> strings;
  Scanner in(json);
  if (!in.eat('[')) return strings;
  for (std::string text; in.eat_string(text); in.eat(',')) strings.push_back(text);
  return strings;
}

std::optional<Dims> parse_int_list(std::string_view text) {
  Dims numbers;
  Scanner in(text);
  const bool is_list = in.eat('[');
  int64_t number = 0;
  while (true) {
    if (in.eat_word("True")) {
      number = 1;
    } else if (in.eat_word("False")) {
      number = 0;
    } else if (!in.eat_number(number)) {
      break;
    }
    numbers.push_back(number);
    if (!is_list || !in.eat(',')) break;
  }
  if (is_list && !in.eat(']')) return std::nullopt;
  if (!in.at_end() || (!is_list && numbers.empty())) return std::nullopt;
  return numbers;
}

int64_t product_of_sizes(int64_t a, int64_t b) {
  constexpr int64_t kMost = int64_t{1} << 50;
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : std::clamp(product, -kMost, kMost);
}

std::string dims_text(const std::vector<Dims>& inputs) {
  std::string out = "[";
  for (size_t i = 0; i < inputs.size(); ++i) {
    out += i == 0 ? "[" : ", [";
    for (size_t d = 0; d < inputs[i].size(); ++d) {
      if (d > 0) out += ", ";
      out += std::to_string(inputs[i][d]);
    }
    out += "]";
  }
  return out + "]";
}

}  // namespace firelane::analyze

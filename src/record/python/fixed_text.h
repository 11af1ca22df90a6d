// A text under construction in a fixed place; what does not fit is cut.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <span>
#include <string_view>

namespace firelane::python_hooks {

class FixedText {
 public:
  explicit FixedText(std::span<char> place) : place_(place) {}

  FixedText& operator<<(std::string_view text) noexcept {
    const size_t n = std::min(text.size(), place_.size() - size_);
    std::copy_n(text.data(), n, place_.data() + size_);
    size_ += n;
    return *this;
  }
  FixedText& operator<<(int number) noexcept {
    std::array<char, 16> digits;
    const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), static_cast<size_t>(end - digits.data()));
  }

  size_t size() const noexcept { return size_; }
  std::string_view view() const noexcept { return {place_.data(), size_}; }

 private:
  std::span<char> place_;
  size_t size_ = 0;
};

}  // namespace firelane::python_hooks

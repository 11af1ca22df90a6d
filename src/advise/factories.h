// Operators that create tensors from numbers alone, and those whose results are random.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/text.h"

namespace firelane::advise {

// Makes a tensor out of nothing but numbers, the same every time.
inline bool is_factory(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "aten::arange", "aten::linspace",   "aten::logspace",     "aten::full",         "aten::ones",       "aten::zeros",
      "aten::eye",    "aten::lift_fresh", "aten::tril_indices", "aten::triu_indices", "aten::hann_window"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}
inline bool is_random(std::string_view name) {
  return contains(name, "rand") || contains(name, "normal") || contains(name, "uniform") ||
         contains(name, "multinomial") || contains(name, "dropout") || contains(name, "bernoulli");
}

}  // namespace firelane::advise

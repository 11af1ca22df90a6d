// A value that is made when it is first asked for, once, whoever asks; the others wait.
#pragma once

#include <mutex>
#include <optional>

namespace firelane::serve {

template <typename T>
class Once {
 public:
  template <typename Make>
  const T& get(const Make& make) const {
    std::call_once(flag_, [&] { value_.emplace(make()); });
    return *value_;
  }

 private:
  mutable std::once_flag flag_;
  mutable std::optional<T> value_;
};

}  // namespace firelane::serve

// Result<T>: a value or one clear error line. For bad input, bad arguments and
// the world; our own mistakes are FL_CHECK (base/check.h). Nothing throws.
//
//   Result<Model> load(...);
//   FL_TRY(Model model, load(path));       // returns the error to the caller
//
// A message names the subject, the place and the next step, without a final dot.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace firelane {

struct Error {
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok()
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  // REQUIRES: !ok()
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace firelane

#define FL_CONCAT_INNER(a, b) a##b
#define FL_CONCAT(a, b) FL_CONCAT_INNER(a, b)

// FL_TRY(declaration, expression): binds the value, or returns the error.
#define FL_TRY(declaration, ...)                                       \
  auto FL_CONCAT(fl_result_, __LINE__) = (__VA_ARGS__);                \
  if (!FL_CONCAT(fl_result_, __LINE__).ok()) {                         \
    return ::firelane::Error{FL_CONCAT(fl_result_, __LINE__).error()}; \
  }                                                                    \
  declaration = std::move(FL_CONCAT(fl_result_, __LINE__)).value()

// FL_TRY_VOID(expression): returns the error of a Result<void>, or goes on.
#define FL_TRY_VOID(...)                                 \
  if (auto fl_result = (__VA_ARGS__); !fl_result.ok()) { \
    return ::firelane::Error{fl_result.error()};         \
  }

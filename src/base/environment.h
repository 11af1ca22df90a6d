// The environment variables that Firelane reads: each is declared here, and docs/profiler.md has the same table
// (tests/python/test_options.py compares them).
#pragma once

#include <cstdlib>
#include <string_view>

namespace firelane {
namespace environment {

struct Variable {
  const char* name;
  std::string_view when_unset;
  std::string_view meaning;
};

inline constexpr Variable kDir = {"FIRELANE_DIR", "the system's temporary folder",
                                  "folder for recordings that were not given an `output`"};
inline constexpr Variable kCupti = {"FIRELANE_CUPTI", "the one that torch or the CUDA toolkit brings",
                                    "path of the `libcupti.so` to use when the process has not loaded one"};
inline constexpr Variable kClock = {"FIRELANE_CLOCK", "the CPU's time-stamp counter where the system trusts it",
                                    "`monotonic` reads `CLOCK_MONOTONIC` instead, which costs more"};
inline constexpr Variable kRecord = {"FIRELANE_RECORD", "nothing is recorded",
                                     "set by `firelane record` for the program that it starts; not for users"};
inline constexpr Variable kVerify = {"FIRELANE_VERIFY", "no steps are timed for it",
                                     "set by `firelane verify` for the program that it starts; not for users"};
inline constexpr Variable kTeardownCupti = {"TEARDOWN_CUPTI", "it is detached",
                                            "`0`: `stop()` does not detach CUPTI; torch.profiler reads it, too"};

inline constexpr Variable kToken = {
    "FIRELANE_TOKEN", "a random one is generated, and only triggers need it",
    "what `--prometheus` wants as `Authorization: Bearer`, for metrics and for triggers"};

inline constexpr Variable kAll[] = {kDir, kCupti, kClock, kRecord, kVerify, kTeardownCupti, kToken};

// Null when it is unset or empty.
inline const char* value_of(const Variable& variable) noexcept {
  const char* value = std::getenv(variable.name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace environment
}  // namespace firelane

// The Python in another process: where it is and which one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "live/process.h"

namespace firelane::live {

struct PythonVersion {
  int minor = 0;  // of Python 3
  bool is_free_threaded = false;

  std::string text() const { return "3." + std::to_string(minor) + (is_free_threaded ? "t" : ""); }
  // As it stands in names of extension modules: "cpython-311".
  std::string tag() const { return "cpython-3" + std::to_string(minor) + (is_free_threaded ? "t" : ""); }
};

struct Python {
  std::string image;  // the file that holds the interpreter: libpython, or the program itself
  PythonVersion version;
};

// Which version of Python a file belongs to by its path: an extension module, libpython, a standard library's folder.
std::optional<PythonVersion> version_in(std::string_view path);

// An Error if the process is no Python program.
Result<Python> find_python(const Process& process);

// Whether the process has loaded torch's own extension module.
bool has_torch(const Process& process);

// Addresses of what the interpreter exports, in the order of `names`; an Error names one that is missing.
Result<std::vector<uint64_t>> python_addresses(const Process& process, const Python& python,
                                               std::span<const std::string_view> names);

}  // namespace firelane::live

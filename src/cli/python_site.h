// How a verb gets its part into a Python program that it starts, without touching the program.
#pragma once

#include <string_view>

#include "base/result.h"

namespace firelane::cli {

// Puts the folder of the package's sitecustomize.py on PYTHONPATH, for children of this process. `verb` is for
// messages.
Result<void> put_site_on_python_path(std::string_view verb);

}  // namespace firelane::cli

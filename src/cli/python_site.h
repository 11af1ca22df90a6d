// How a verb gets its part into a Python program that it starts, without touching the program.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace firelane::cli {

// The folder of the Python package firelane: beside an installed binary (bin/../lib/python3.11/site-packages, or the
// folder of pip install --target), or in the source tree that it was built in. Empty when there is none.
std::filesystem::path find_python_package();

// Puts the folder of the package's sitecustomize.py on PYTHONPATH, for children of this process. `verb` is for
// messages.
Result<void> put_site_on_python_path(std::string_view verb);

}  // namespace firelane::cli

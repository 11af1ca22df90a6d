#include "cli/python_site.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

// The Python package's folder for sitecustomize.py: beside an installed binary
// (bin/../lib/python3.11/site-packages), or in the source tree that it was built in.
Result<fs::path> find_site_folder(std::string_view verb) {
  std::error_code ignored;
  const fs::path bin = fs::canonical("/proc/self/exe", ignored).parent_path();
  const auto has_it = [](const fs::path& package) {
    std::error_code none;
    return fs::exists(package / "_site" / "sitecustomize.py", none);
  };
  for (const fs::path& lib : {bin.parent_path() / "lib", bin.parent_path() / "lib64"})
    for (fs::directory_iterator at(lib, ignored), end; at != end; at.increment(ignored))
      if (has_it(at->path() / "site-packages" / "firelane")) return at->path() / "site-packages" / "firelane" / "_site";
  for (fs::path up = bin; up.has_relative_path(); up = up.parent_path())
    if (has_it(up / "python" / "firelane")) return up / "python" / "firelane" / "_site";
  return Error{std::string(verb) + ": the Python package firelane was not found near " + (bin / "firelane").string() +
               "; install both with pip install firelane"};
}

}  // namespace

Result<void> put_site_on_python_path(std::string_view verb) {
  FL_TRY(const fs::path site, find_site_folder(verb));
  const char* path = std::getenv("PYTHONPATH");
  const std::string python_path = site.string() + (path != nullptr && *path != '\0' ? ":" + std::string(path) : "");
  setenv("PYTHONPATH", python_path.c_str(), 1);
  return {};
}

}  // namespace firelane::cli

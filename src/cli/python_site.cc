#include "cli/python_site.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace firelane::cli {

namespace fs = std::filesystem;

fs::path find_python_package() {
  std::error_code ignored;
  const fs::path bin = fs::canonical("/proc/self/exe", ignored).parent_path();
  const auto has_it = [](const fs::path& package) {
    std::error_code none;
    return fs::exists(package / "_site" / "sitecustomize.py", none);
  };
  for (const fs::path& lib : {bin.parent_path() / "lib", bin.parent_path() / "lib64"})
    for (fs::directory_iterator at(lib, ignored), end; at != end; at.increment(ignored))
      for (const char* packages : {"site-packages", "dist-packages"})  // the latter: Debian's own pip
        if (has_it(at->path() / packages / "firelane")) return at->path() / packages / "firelane";
  if (has_it(bin.parent_path() / "firelane")) return bin.parent_path() / "firelane";
  for (fs::path up = bin; up.has_relative_path(); up = up.parent_path())
    if (has_it(up / "python" / "firelane")) return up / "python" / "firelane";
  return {};
}

Result<void> put_site_on_python_path(std::string_view verb) {
  const fs::path package = find_python_package();
  if (package.empty()) {
    std::error_code ignored;
    return Error{std::string(verb) + ": the Python package firelane was not found next to " +
                 fs::canonical("/proc/self/exe", ignored).string() + "; install both with pip install firelane"};
  }
  const fs::path site = package / "_site";
  const char* path = std::getenv("PYTHONPATH");
  const std::string python_path = site.string() + (path != nullptr && *path != '\0' ? ":" + std::string(path) : "");
  setenv("PYTHONPATH", python_path.c_str(), 1);
  return {};
}

}  // namespace firelane::cli

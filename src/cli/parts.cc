#include "cli/parts.h"

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "cli/python_site.h"
#include "serve/pages.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

// "2.6, 2.11, 2.12 (no GPU)" of recorders/torch_2_6_precxx11.so, torch_2_11.so, torch_2_12_cpu.so.
std::string recorders_in(const fs::path& folder) {
  std::set<std::pair<std::pair<int, int>, std::string>> found;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    const std::string name = at->path().stem().string();
    int major = 0;
    int minor = 0;
    if (at->path().extension() != ".so" || std::sscanf(name.c_str(), "torch_%d_%d", &major, &minor) != 2) continue;
    found.insert({{major, minor}, name.ends_with("_cpu") ? " (no GPU)" : ""});
  }
  std::string text;
  for (const auto& [version, note] : found)
    text +=
        (text.empty() ? "torch " : ", ") + std::to_string(version.first) + "." + std::to_string(version.second) + note;
  return text.empty() ? "none in the package; firelane build-recorder compiles one for the torch that is installed"
                      : text;
}

}  // namespace

std::string parts_text() {
  std::string text = "firelane " FIRELANE_VERSION "\n  viewer     ";
  text += serve::all_pages().empty() ? "no: built without viewer/dist" : "yes";
  const fs::path package = find_python_package();
  text += "\n  Python     ";
  if (package.empty()) {
    return text + "no package beside this command: traces are read, nothing is recorded (pip install firelane)\n";
  }
  text += "package in " + package.string();
  text += "\n  recorders  " + recorders_in(package / "recorders") + "\n";
  std::error_code ignored;
  const bool has_sources =
      fs::exists(package / "recorder_source", ignored) || package.parent_path().filename() == "python";
  text += std::string("  sources    ") + (has_sources ? "yes" : "no: firelane build-recorder cannot compile") + "\n";
  return text + "What fits the torch of a Python: python -m firelane --version --parts\n";
}

}  // namespace firelane::cli

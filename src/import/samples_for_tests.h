// Where tests find real traces of other tools. They are not part of the project: without the folder such tests skip.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace firelane::importer {

// The path of a sample; "" when it is not here. FIRELANE_SAMPLES names the folder; else it is looked for beside the
// checkout, as shared/traces/other.
inline std::string sample_path(const std::string& file) {
  namespace fs = std::filesystem;
  if (const char* const folder = std::getenv("FIRELANE_SAMPLES"); folder != nullptr) {
    return fs::exists(fs::path(folder) / file) ? (fs::path(folder) / file).string() : "";
  }
  fs::path up = fs::absolute(FIRELANE_TEST_DATA);
  for (int level = 0; level < 6; ++level, up = up.parent_path()) {
    const fs::path found = up / "shared" / "traces" / "other" / file;
    if (fs::exists(found)) return found.string();
  }
  return "";
}

#define FL_NEED_SAMPLE(path, file)                      \
  const std::string path = importer::sample_path(file); \
  if (path.empty()) GTEST_SKIP() << "no sample " << file << " here; set FIRELANE_SAMPLES to its folder"

}  // namespace firelane::importer

// A run as a small JSON file, and a folder of them: baselines that can be committed or cached.
//
//   baselines/main.0001.json, main.0002.json, ...
//
// A label ("main") has one file for each run, numbered in the order in which they were added. A file is what
// Run holds, the work beyond the hundred largest groups added up: some ten kilobytes. Readers skip what they do not
// know, and what is missing is as if it had not been recorded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compare/run/run.h"

namespace firelane::compare {

std::string to_json(const Run& run);
// `name` is for messages.
Result<Run> run_from_json(std::string_view json, const std::string& name);

struct StoredRun {
  std::string file;  // "baselines/main.0001.json"
  std::string label;
  int64_t number = 0;
  Run run;
};

// For all labels, or for one; by label and number. A missing folder has none.
Result<std::vector<StoredRun>> read_store(const std::string& folder, const std::string& label = "");
// The name of the file. The folder is made when it is missing.
Result<std::string> add_to_store(const std::string& folder, const std::string& label, const Run& run);
// All but the newest `keep` runs of the label; how many files are gone.
Result<int64_t> drop_from_store(const std::string& folder, const std::string& label, int64_t keep);

// Letters, digits, _ and -: what a label may have.
bool is_label(std::string_view text);

}  // namespace firelane::compare

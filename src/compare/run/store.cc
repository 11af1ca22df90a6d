#include "compare/run/store.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace firelane::compare {

namespace {

namespace fs = std::filesystem;

// "main.0007.json" is label and number.
bool split_name(const std::string& name, std::string& label, int64_t& number) {
  if (!name.ends_with(".json")) return false;
  const std::string stem = name.substr(0, name.size() - 5);
  const size_t dot = stem.rfind('.');
  if (dot == std::string::npos) return false;
  label = stem.substr(0, dot);
  const char* end = stem.data() + stem.size();
  const auto parsed = std::from_chars(stem.data() + dot + 1, end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end && is_label(label);
}

struct StoreFile {
  std::string label;
  int64_t number = 0;
  fs::path path;
};

std::vector<StoreFile> files_of(const std::string& folder, const std::string& label) {
  std::vector<StoreFile> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    StoreFile file{.path = at->path()};
    if (!split_name(at->path().filename().string(), file.label, file.number)) continue;
    if (label.empty() || file.label == label) out.push_back(std::move(file));
  }
  std::sort(out.begin(), out.end(), [](const StoreFile& a, const StoreFile& b) {
    return a.label != b.label ? a.label < b.label : a.number < b.number;
  });
  return out;
}

}  // namespace

bool is_label(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  });
}

Result<std::vector<StoredRun>> read_store(const std::string& folder, const std::string& label) {
  std::vector<StoredRun> out;
  for (const StoreFile& file : files_of(folder, label)) {
    std::ifstream stream(file.path, std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    if (!stream) return Error{file.path.string() + ": cannot be read"};
    FL_TRY(Run run, run_from_json(text.str(), file.path.string()));
    out.push_back({file.path.string(), file.label, file.number, std::move(run)});
  }
  return out;
}

Result<std::string> add_to_store(const std::string& folder, const std::string& label, const Run& run) {
  if (!is_label(label)) return Error{label + ": a label has letters, digits, _ and - only"};
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error{folder + ": " + error.message()};
  const std::vector<StoreFile> there = files_of(folder, label);
  std::string number = std::to_string(there.empty() ? 1 : there.back().number + 1);
  number.insert(0, number.size() < 4 ? 4 - number.size() : 0, '0');
  const fs::path path = fs::path(folder) / (label + "." + number + ".json");
  // Under another name first: a reader never sees half of it.
  const fs::path part = path.string() + ".part";
  std::ofstream stream(part, std::ios::binary);
  stream << to_json(run);
  stream.close();
  if (!stream) return Error{part.string() + ": cannot be written"};
  fs::rename(part, path, error);
  if (error) return Error{path.string() + ": " + error.message()};
  return path.string();
}

Result<int64_t> drop_from_store(const std::string& folder, const std::string& label, int64_t keep) {
  const std::vector<StoreFile> there = files_of(folder, label);
  if (there.empty()) return Error{folder + ": no runs of '" + label + "'; firelane baseline list shows what there is"};
  int64_t gone = 0;
  for (size_t i = 0; i + static_cast<size_t>(keep) < there.size(); ++i) {
    std::error_code error;
    fs::remove(there[i].path, error);
    if (error) return Error{there[i].path.string() + ": " + error.message()};
    ++gone;
  }
  return gone;
}

}  // namespace firelane::compare

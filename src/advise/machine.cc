#include "advise/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace firelane::advise {

namespace {

std::optional<double> number_at(std::string_view json) {
  const size_t at = json.find_first_not_of(" [,");
  if (at == std::string_view::npos) return std::nullopt;
  double number = 0;
  const auto read = std::from_chars(json.data() + at, json.data() + json.size(), number);
  constexpr double kMost = 1e9;  // of counts and seconds: traces may be damaged
  return read.ec == std::errc{} && std::abs(number) <= kMost ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<double> noted_number(const Model& model, std::string_view key) {
  const MetadataEntry* entry = model.find_metadata(key);
  return entry == nullptr ? std::nullopt : number_at(entry->json);
}

std::optional<double> noted_field(const Model& model, std::string_view key, std::string_view field) {
  const MetadataEntry* entry = model.find_metadata(key);
  const std::string name = "\"" + std::string(field) + "\":";
  const size_t at = entry == nullptr ? std::string::npos : entry->json.find(name);
  return at == std::string::npos ? std::nullopt : number_at(std::string_view(entry->json).substr(at + name.size()));
}

std::string noted_text(const Model& model, std::string_view key) {
  const MetadataEntry* entry = model.find_metadata(key);
  if (entry == nullptr || entry->json.size() < 2 || entry->json.front() != '"') return "";
  std::string text;
  for (size_t i = 1; i + 1 < entry->json.size(); ++i) {
    if (entry->json[i] == '\\' && i + 2 < entry->json.size()) ++i;  // quotes and backslashes; others are rare here
    text += entry->json[i];
  }
  return text;
}

std::vector<int64_t> noted_numbers(const Model& model, std::string_view key) {
  std::vector<int64_t> numbers;
  const MetadataEntry* entry = model.find_metadata(key);
  if (entry == nullptr) return numbers;
  std::string_view rest = entry->json;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (const auto number = number_at(rest.substr(0, comma))) numbers.push_back(static_cast<int64_t>(*number));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return numbers;
}

int64_t cores_allowed(const Model& model) {
  for (const std::string_view field : {"cores_allowed", "cores"}) {
    if (const auto cores = noted_field(model, "machine", field)) return static_cast<int64_t>(*cores);
  }
  return kNoNumber;
}

std::string stacks_flag(const Model& model) {
  const MetadataEntry* front = model.find_metadata("front");
  if (front == nullptr) return "with_stack=True";
  if (contains(front->json, "firelane record")) return "--stacks";
  return front->json == "\"firelane.profile\"" ? "stacks=True" : "with_stack=True";
}

}  // namespace firelane::advise

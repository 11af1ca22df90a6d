#include "import/distributed.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace firelane::importer {

namespace dom = simdjson::dom;

namespace {

// More groups or members than any job has: the rest of a hostile list is left out.
constexpr size_t kMaxGroups = 65'536;
constexpr size_t kMaxRanks = 1'048'576;

int64_t number_in(const dom::element& object, std::string_view key) {
  int64_t number = 0;
  if (object[key].get(number) == simdjson::SUCCESS) return number;
  std::string_view text;
  if (object[key].get(text) != simdjson::SUCCESS) return kNoNumber;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : kNoNumber;
}

std::string text_in(const dom::element& object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

void set_if_known(int64_t& to, int64_t number) {
  if (number != kNoNumber) to = number;
}

// Some exporters write the dictionary as Python prints it: {'backend': 'nccl', 'rank': 0, 'nccl_version': None}.
std::string json_of_python(std::string_view text) {
  std::string out;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\' && i + 1 < text.size()) {
        out.append(text.substr(i + 1, 1) == "'" ? "'" : std::string(text.substr(i, 2)));
        ++i;
      } else if (c == quote) {
        quote = 0;
        out += '"';
      } else {
        out.append(c == '"' ? "\\\"" : std::string(1, c));
      }
      continue;
    }
    const auto word = [&](std::string_view python, std::string_view json) {
      if (text.substr(i, python.size()) != python) return false;
      out += json;
      i += python.size() - 1;
      return true;
    };
    if (c == '\'' || c == '"') {
      quote = c;
      out += '"';
    } else if (c == '(' || c == ')') {
      out += c == '(' ? '[' : ']';
    } else if (!word("True", "true") && !word("False", "false") && !word("None", "null")) {
      out += c;
    }
  }
  return out;
}

ProcessGroup read_group(const dom::element& config) {
  ProcessGroup group{.name = text_in(config, "pg_name"),
                     .description = text_in(config, "pg_desc"),
                     .backend = text_in(config, "backend_config"),
                     .size = number_in(config, "pg_size")};
  // Older versions of torch: pg_id, backend_id.
  if (group.name.empty() && number_in(config, "pg_id") != kNoNumber)
    group.name = std::to_string(number_in(config, "pg_id"));
  if (group.backend.empty()) group.backend = text_in(config, "backend");
  dom::array ranks;
  std::string_view text;
  if (config["ranks"].get(ranks) == simdjson::SUCCESS) {
    for (const dom::element rank : ranks) {
      int64_t number = 0;
      if (group.ranks.size() < kMaxRanks && rank.get(number) == simdjson::SUCCESS) group.ranks.push_back(number);
    }
  } else if (config["ranks"].get(text) == simdjson::SUCCESS) {
    RankList list = parse_ranks(text);
    if (!list.is_cut) group.ranks = std::move(list.ranks);
  }
  if (group.size == kNoNumber && !group.ranks.empty()) group.size = static_cast<int64_t>(group.ranks.size());
  return group;
}

void read_torch_info(const dom::element& value, DistributedInfo& out) {
  out.present = true;
  out.backend = text_in(value, "backend");
  set_if_known(out.rank, number_in(value, "rank"));
  set_if_known(out.world_size, number_in(value, "world_size"));
  out.nccl_version = text_in(value, "nccl_version");
  dom::array groups;
  if (value["pg_config"].get(groups) != simdjson::SUCCESS) return;
  const std::vector<ProcessGroup> before = std::exchange(out.groups, {});
  for (const dom::element config : groups) {
    if (out.groups.size() < kMaxGroups) out.groups.push_back(read_group(config));
  }
  // Sequences that were read first.
  for (const ProcessGroup& old : before) {
    for (ProcessGroup& group : out.groups) {
      if (group.name == old.name) group.first_sequence = old.first_sequence;
    }
  }
}

void read_launch(const dom::element& value, DistributedInfo& out) {
  out.launcher = text_in(value, "launcher");
  out.local_rank = number_in(value, "local_rank");
  out.local_world_size = number_in(value, "local_world_size");
  if (out.rank == kNoNumber) out.rank = number_in(value, "rank");
  if (out.world_size == kNoNumber) out.world_size = number_in(value, "world_size");
}

void read_sequences(const dom::element& value, DistributedInfo& out) {
  dom::object sequences;
  if (value.get(sequences) != simdjson::SUCCESS) return;
  for (const auto& [name, each] : sequences) {
    int64_t number = 0;
    if (each.get(number) != simdjson::SUCCESS || number < 0) continue;
    const auto same = std::find_if(out.groups.begin(), out.groups.end(),
                                   [&, wanted = name](const ProcessGroup& group) { return group.name == wanted; });
    if (same != out.groups.end()) {
      same->first_sequence = number;
    } else if (out.groups.size() < kMaxGroups) {
      out.groups.push_back({.name = std::string(name), .first_sequence = number});
    }
  }
}

}  // namespace

RankList parse_ranks(std::string_view text) {
  RankList out;
  for (size_t i = 0; i < text.size() && out.ranks.size() < kMaxRanks;) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), number);
    if (error != std::errc()) {
      out.is_cut = out.is_cut || text[i] == '.';
      ++i;
      continue;
    }
    out.ranks.push_back(number);
    i = static_cast<size_t>(end - text.data());
  }
  return out;
}

bool read_distributed(std::string_view key, std::string_view json, DistributedInfo& out) {
  const bool is_torch = key == "distributedInfo";
  if (!is_torch && key != "launch" && key != "group_sequences") return false;
  dom::parser parser;
  dom::element value;
  if (parser.parse(json.data(), json.size()).get(value) != simdjson::SUCCESS) return true;
  dom::parser quoted_parser;
  std::string_view quoted;
  if (value.get(quoted) == simdjson::SUCCESS) {
    const std::string unquoted = json_of_python(quoted);
    if (quoted_parser.parse(unquoted).get(value) != simdjson::SUCCESS) return true;
  }
  if (!value.is_object()) return true;
  if (is_torch) read_torch_info(value, out);
  if (key == "launch") read_launch(value, out);
  if (key == "group_sequences") read_sequences(value, out);
  return true;
}

void finish_distributed(DistributedInfo& out) {
  // A launcher that starts one process tells of no job.
  if (!out.present && out.rank != kNoNumber && out.world_size > 1) out.present = true;
}

}  // namespace firelane::importer

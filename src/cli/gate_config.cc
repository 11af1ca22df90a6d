#include "cli/gate_config.h"

#include <filesystem>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace firelane::cli {

namespace {

std::string place_of(const std::string& path, const toml::source_region& at) {
  return path + ":" + std::to_string(at.begin.line);
}

// "3%", or a plain number.
Result<std::string> limit_text(const std::string& path, const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto whole = node.value_exact<int64_t>()) return std::to_string(*whole);
  if (const auto real = node.value_exact<double>()) return std::to_string(*real);
  return Error{place_of(path, node.source()) + ": a limit is a text such as \"3%\", or a number"};
}

Result<void> read_limits(const std::string& path, const toml::table& limits, GateConfig& config) {
  for (const auto& [key, node] : limits) {
    FL_TRY(std::string text, limit_text(path, node));
    config.options.limits.push_back({std::string(key.str()), std::move(text)});
  }
  return {};
}

Result<void> read_queries(const std::string& path, const toml::table& queries, GateConfig& config) {
  for (const auto& [key, node] : queries) {
    const toml::table* entry = node.as_table();
    const auto query = entry == nullptr ? std::nullopt : (*entry)["query"].value<std::string>();
    const toml::node* limit = entry == nullptr ? nullptr : entry->get("limit");
    if (!query || limit == nullptr) {
      return Error{place_of(path, node.source()) + ": gate.sql." + std::string(key.str()) +
                   " needs query = \"select ...\" and limit = \"5%\""};
    }
    FL_TRY(std::string text, limit_text(path, *limit));
    config.queries.emplace_back(std::string(key.str()), *query);
    config.options.limits.push_back({std::string(key.str()), std::move(text)});
  }
  return {};
}

Result<void> read_gate(const std::string& path, const toml::table& gate, GateConfig& config) {
  for (const auto& [key, node] : gate) {
    const std::string_view name = key.str();
    if (name == "alpha") {
      const auto alpha = node.value<double>();
      if (!alpha || *alpha <= 0 || *alpha > 0.5) {
        return Error{place_of(path, node.source()) + ": gate.alpha is a number between 0 and 0.5"};
      }
      config.options.alpha = *alpha;
    } else if (name == "store" || name == "label") {
      const auto text = node.value_exact<std::string>();
      if (!text) return Error{place_of(path, node.source()) + ": gate." + std::string(name) + " is a text"};
      (name == "store" ? config.store : config.label) = *text;
    } else if (name == "limits" && node.is_table()) {
      FL_TRY_VOID(read_limits(path, *node.as_table(), config));
    } else if (name == "sql" && node.is_table()) {
      FL_TRY_VOID(read_queries(path, *node.as_table(), config));
    } else {
      return Error{place_of(path, node.source()) + ": gate." + std::string(name) +
                   " is not known; there are alpha, store, label, limits and sql"};
    }
  }
  return {};
}

}  // namespace

Result<GateConfig> read_gate_config(const std::string& path) {
  GateConfig config;
  const std::string file = path.empty() ? "firelane.toml" : path;
  std::error_code error;
  if (path.empty() && !std::filesystem::exists(file, error)) return config;
  const toml::parse_result parsed = toml::parse_file(file);
  if (!parsed) {
    const std::string place = parsed.error().source().begin.line == 0 ? file : place_of(file, parsed.error().source());
    return Error{place + ": " + std::string(parsed.error().description())};
  }
  if (const toml::table* gate = parsed.table()["gate"].as_table()) FL_TRY_VOID(read_gate(file, *gate, config));
  return config;
}

}  // namespace firelane::cli

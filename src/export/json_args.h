// Args from the model's columns, as JSON: a receiver of describe::visit_host_args() and its siblings.
#pragma once

#include <string>
#include <string_view>

#include "export/json_pairs.h"
#include "model/model.h"

namespace firelane::exporter {

class JsonArgs {
 public:
  JsonArgs(const Model& model, std::string& out) : model_(model), pairs_(out) {}
  void number(std::string_view key, int64_t value) { pairs_.number(key, value); }
  void real(std::string_view key, float value) { pairs_.real(key, value); }
  void triple(std::string_view key, int32_t x, int32_t y, int32_t z) {
    pairs_.json(key, "[" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + "]");
  }
  void text(std::string_view key, StringId value) { pairs_.text(key, model_.text(value)); }
  void word(std::string_view key, std::string_view value) { pairs_.text(key, value); }
  void json(std::string_view key, StringId value) { pairs_.json(key, model_.text(value)); }
  void object(StringId value) { pairs_.object(model_.text(value)); }

 private:
  const Model& model_;
  JsonPairs pairs_;
};

}  // namespace firelane::exporter

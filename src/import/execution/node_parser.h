// One node of an execution trace: its JSON -> ExecutionNode.
//
// Chakra writes the lists of a node as texts, and the texts are Python's: "[[5, 6, 0, 1024, 4, 'cpu']]". Both are read.
#pragma once

#include <simdjson.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/execution/execution_trace.h"

namespace firelane::importer {

class NodeParser {
 public:
  // False: not a node. An id of 0 counts as none.
  bool read(std::string_view text, ExecutionNode& node);

 private:
  using JsonValue = simdjson::dom::element;
  using Found = simdjson::simdjson_result<JsonValue>;
  enum List : uint8_t { kValues, kTypes, kShapes, kStrides, kOutputs, kLists };

  void read_values(const JsonValue& root, ExecutionNode& node);
  // The list itself, where a text stands for it.
  Found list_in(const Found& value, List which);

  simdjson::dom::parser parser_;
  std::array<simdjson::dom::parser, kLists> of_lists_;
  std::string padded_;
};

// A list as Python prints it, converted to JSON; empty if it is not a list.
std::optional<std::string> json_of_python_list(std::string_view text);

}  // namespace firelane::importer

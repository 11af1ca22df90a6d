// Chakra's execution traces as protobuf (.et; mlcommons/chakra, et_def.proto): messages one after another, each behind
// its length as a varint. The first is the GlobalMetadata, all others are Nodes.
//
// A node has the same fields as in Chakra's JSON, and its lists are texts in both: it is read as that.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "import/execution/execution_trace.h"

namespace firelane::importer {

// Metadata with a version or attributes, or none, and then a node.
bool is_chakra_protobuf(std::string_view begin);

// A file that was cut off gives the nodes before the tear.
Result<ExecutionTrace> parse_chakra_protobuf(std::string_view bytes, const std::string& name);

}  // namespace firelane::importer

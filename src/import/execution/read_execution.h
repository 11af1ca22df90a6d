// Execution traces (ExecutionTraceObserver, Chakra's JSON and protobuf) alone, and joined to the trace of the same run.
//
// Alone, calls become slices with shapes, types and parents, and the data dependencies between them a table. Most files
// have no times: slices then stand in the order of the calls, one microsecond for each, and info.has_order_only says
// so.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "import/execution/execution_trace.h"
#include "import/reader.h"

namespace firelane::importer {

Reader execution_reader();  // JSON
Reader chakra_reader();     // protobuf

// For a file, also compressed.
Result<ExecutionTrace> load_execution_trace(const std::string& path);

// Gives the ops of `model` the data dependencies of the execution trace of the same run: rf_id is what the trace calls
// "Record function id". An Error when the two do not belong together, or cannot be joined.
Result<void> join_execution_trace(const ExecutionTrace& trace, const std::string& path, Model& model);

}  // namespace firelane::importer

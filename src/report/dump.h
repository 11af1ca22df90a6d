// Prints the model's rows as they are, one line a row: `firelane dump`, the oracle of tests.
//
//   host_slices 12 lane=3 start_ns=1500 duration_ns=250 name="aten::mm" ... parent=11
//   {"table":"host_slices","row":12,"lane":3,"start_ns":1500, ... "parent":11}
//
// Every column of every table is there, under its name in model/model.h; absent values are
// `-` in text and null in JSON. With args, each row that came from an event of the source
// carries that whole event as `event`.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/model.h"

namespace firelane::report {

enum class DumpForm : uint8_t { kText, kJsonLines };

struct DumpOptions {
  std::vector<std::string> tables;  // empty: all
  size_t max_rows = 0;              // of each table; 0 = all
  DumpForm form = DumpForm::kText;
  bool args = false;
};

// In the order of an unrestricted dump.
std::vector<std::string> dump_table_names();

using DumpSink = std::function<Result<void>(std::string_view lines)>;
Result<void> dump(const Model& model, const DumpOptions& options, const DumpSink& sink);

}  // namespace firelane::report

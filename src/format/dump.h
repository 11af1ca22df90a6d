// A .lane file as text, one line a record, in file order: to look at by hand, and
// what tests compare with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firelane::format {

struct DumpOptions {
  bool times = true;   // ticks since the start in front of each record
  bool notes = true;   // items about the recording; their numbers differ from run to run
  bool chunks = true;  // a line per chunk: offset, kind, number, size
};

// Prints as far as the file can be read; the last line says how it ends.
Result<std::string> dump_lane(std::string_view file, const std::string& name, const DumpOptions& options = {});

}  // namespace firelane::format

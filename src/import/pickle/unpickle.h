// Reads a Python pickle as plain data, and executes nothing.
//
// A pickle is a program for a stack machine, and a few of its instructions import and call whatever they name: loading
// an unknown file with Python's pickle is running it. This machine has only the instructions that put numbers, texts,
// lists, tuples and dictionaries together (opcodes.h lists them); everything else is refused with its offset. Memory
// stays in proportion to the bytes read, whatever the file says about lengths and places.
//
// A file that ends in the middle gives what was there: containers that were being filled when it ended hold what had
// been read for them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "import/byte_source.h"
#include "import/pickle/document.h"

namespace firelane::importer {

// Protocol 2 and later, as torch and Python write it.
bool is_pickle(std::string_view begin);

struct UnpickleOptions {
  size_t piece_bytes = size_t{1} << 20;      // of the source at a time
  uint64_t free_bytes = uint64_t{64} << 20;  // of memory, that a file of any size may take
};

struct Unpickled {
  Document document;
  uint64_t bytes = 0;         // read
  bool is_cut = false;        // the file ended in the middle
  bool has_trailing = false;  // bytes follow the pickle's end; they were not read
};

// `name` stands in messages.
Result<Unpickled> unpickle(ByteSource& source, const std::string& name, const UnpickleOptions& options = {});

}  // namespace firelane::importer

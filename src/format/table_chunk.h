// Rows of a table that other chunks have no form for, as named columns: what a converted trace holds beside its events.
//
// A reader takes the columns that it knows by their names; it skips the others, and tables that it does not know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firelane::format {

struct TableColumn {
  std::string name;
  std::vector<int64_t> numbers;    // one a row
  std::vector<std::string> texts;  // not empty: the numbers are places in it, from 0
};

struct TableChunk {
  std::string table;
  uint64_t rows = 0;
  std::vector<TableColumn> columns;
};

std::string encode_table(const TableChunk& chunk);

// An error for bytes that are no such chunk. Memory is bounded by the payload's size, whatever it claims.
Result<TableChunk> decode_table(std::string_view payload);

}  // namespace firelane::format

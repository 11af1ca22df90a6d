// What 64-bit ELF files say of themselves: symbols (those for the linker, and those that are there unless somebody has
// stripped the file), functions, and segments; and where symbols are in another process that has mapped such a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "live/process.h"

namespace firelane::live {

// The values of `names` in a 64-bit ELF file, in their order; 0: it does not define it. Of dynamic symbols (.dynsym)
// first, and of the others (.symtab) what these do not have. Relative to the file's lowest address. An Error for
// anything else. Hostile files are answered, too.
Result<std::vector<uint64_t>> symbol_values(std::span<const uint8_t> file, std::span<const std::string_view> names);

// The addresses of `names` in the process, from the first mapping of the file at `path`; 0 where it is not defined.
Result<std::vector<uint64_t>> symbol_addresses(const Process& process, const std::string& path,
                                               std::span<const std::string_view> names);

struct ElfFunction {
  uint64_t address = 0;   // as the file counts
  uint64_t size = 0;      // 0: it does not say
  std::string_view name;  // in the file's bytes; mangled
};

// All functions that a 64-bit ELF file names, by address; none of anything else.
std::vector<ElfFunction> functions_of(std::span<const uint8_t> file);

struct ElfSegment {
  uint64_t file_offset = 0;
  uint64_t address = 0;  // as the file's symbols count
  uint64_t bytes = 0;
};

// What of an ELF file is loaded into memory.
std::vector<ElfSegment> segments_of(std::span<const uint8_t> file);

// The path of the process's C library.
Result<std::string> c_library(const Process& process);

}  // namespace firelane::live

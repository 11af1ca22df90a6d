// Addresses of exported symbols in another process: those of an ELF file that it has mapped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "live/process.h"

namespace firelane::live {

// The values of `names` in the dynamic symbols of a 64-bit ELF file, in their order; 0: it does not define it. Relative
// to the file's lowest address. An Error for anything else. Hostile files are answered, too.
Result<std::vector<uint64_t>> symbol_values(std::span<const uint8_t> file, std::span<const std::string_view> names);

// The addresses of `names` in the process, from the first mapping of the file at `path`; 0 where it is not defined.
Result<std::vector<uint64_t>> symbol_addresses(const Process& process, const std::string& path,
                                               std::span<const std::string_view> names);

// The path of the process's C library.
Result<std::string> c_library(const Process& process);

}  // namespace firelane::live

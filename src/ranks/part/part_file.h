// The file of a part; docs/ranks-part.md is the other half of this header.
//
//   file    := magic "FLRANKS\n", version u32, section..., end section
//   section := kind u32, bytes u64, checksum u32 (CRC-32C of kind, bytes and payload), payload
//   column  := form u8, width u8, base i64, values: rows x width bytes (none when constant)
//
// Everything is little-endian. Sections of an unknown kind are skipped. A file ends with its end section: one that was
// cut is refused, so that half of a rank is never taken for a rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ranks/part/part.h"

namespace firelane::ranks {

inline constexpr std::string_view kPartMagic = "FLRANKS\n";
inline constexpr uint32_t kPartVersion = 1;
inline constexpr size_t kPartHeaderBytes = 12;
inline constexpr size_t kSectionHeaderBytes = 16;

bool is_part(std::string_view bytes);

std::string encode_part(const Part& part);
// `name` stands in messages.
Result<Part> decode_part(std::string_view bytes, const std::string& name);

Result<Part> read_part(const std::string& path);
// Under another name first, so that nobody reads half of it.
Result<void> write_part(const Part& part, const std::string& path);

}  // namespace firelane::ranks

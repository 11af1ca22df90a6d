// Which elements of two sequences are the same ones: the pairs that remain when one is turned into the other by
// insertions and deletions, as few as possible (Myers' O(ND) comparison; where the sequences differ too much for it,
// between elements that occur once in each).
//
// Used to recognize the launches of one training step in another (light_ops.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace firelane::importer {

inline constexpr uint32_t kUnpaired = UINT32_MAX;

// For each element of `a`, the index of its partner in `b`, or kUnpaired. Partners are equal and in the same order.
std::vector<uint32_t> align(std::span<const uint64_t> a, std::span<const uint64_t> b);

}  // namespace firelane::importer

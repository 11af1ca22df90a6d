// Reads what traces say of an op's inputs: JSON texts of shapes, types and concrete values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firelane::analyze {

using Dims = std::vector<int64_t>;

// One entry per input: [[2, 3], []] gives {{2, 3}, {}}. The shapes of a list of tensors are
// given as {}, as torch's own results do. Damaged text gives the inputs before the damage.
std::vector<Dims> parse_input_dims(std::string_view json);

// ["float", "Scalar"] or ["", "[1, 1]"]: the strings, unescaped only as far as \" and \\.
std::vector<std::string> parse_input_strings(std::string_view json);

// "[1, 1]" or "[True, False]" (1 and 0) or "3": the numbers; nothing when it is neither.
std::optional<Dims> parse_int_list(std::string_view text);

// Of sizes, and of elements and their bytes. No machine has memory for more than 2^50: a larger product comes from a
// broken shape, and stays there.
int64_t product_of_sizes(int64_t a, int64_t b);

// As Python prints it: "[[2, 3], []]".
std::string dims_text(const std::vector<Dims>& inputs);

}  // namespace firelane::analyze

// What the trace says about where and how it was recorded, as far as advice depends on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::advise {

// Cores that the process could use; kNoNumber when the trace does not say.
int64_t cores_allowed(const Model& model);

// Notes of the recorder: {} when the trace has none of that name, or it is something else.
std::optional<double> noted_number(const Model& model, std::string_view key);
std::string noted_text(const Model& model, std::string_view key);  // "" too
std::vector<int64_t> noted_numbers(const Model& model, std::string_view key);
// A number in a note that is an object: {"threads": 2}.
std::optional<double> noted_field(const Model& model, std::string_view key, std::string_view field);

// How whoever recorded this asks for stacks: "--stacks", "stacks=True" or "with_stack=True".
std::string stacks_flag(const Model& model);

}  // namespace firelane::advise

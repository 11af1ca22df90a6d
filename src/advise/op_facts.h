// What an operator was called with, as rules ask for it: its name, the shapes of its inputs, single numbers among them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise/host_evidence.h"
#include "analyze/ops/op_inputs.h"
#include "model/model.h"

namespace firelane::advise {

inline std::string_view name_of_op(const Model& model, Row op) { return model.text(model.host_slices.name[op]); }

// The shapes of its inputs, {} for what is no tensor; empty where shapes were not recorded.
inline std::vector<analyze::Dims> shapes_of_op(const Model& model, Row op) {
  return analyze::parse_input_dims(input_dims_text(model, op));
}

// Inputs that are no tensors, as texts: "2", "[1, 1]", "True"; "" for tensors.
inline std::vector<std::string> numbers_of_op(const Model& model, Row op) {
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || model.op_details.concrete_inputs[detail] == kNoString) return {};
  return analyze::parse_input_strings(model.text(model.op_details.concrete_inputs[detail]));
}

// The input at `place` if it is one whole number.
inline std::optional<int64_t> number_of_op(const Model& model, Row op, size_t place) {
  const std::vector<std::string> numbers = numbers_of_op(model, op);
  if (place >= numbers.size()) return {};
  const std::optional<analyze::Dims> value = analyze::parse_int_list(numbers[place]);
  return value && value->size() == 1 ? std::optional(value->front()) : std::nullopt;
}

// The product of its sizes; in floating point, because sizes of broken traces overflow.
inline double elements_of(const analyze::Dims& dims) {
  double elements = 1;
  for (const int64_t size : dims) elements *= static_cast<double>(size);
  return elements;
}

// "[64, 512]"
inline std::string shape_text(const analyze::Dims& dims) {
  const std::string text = analyze::dims_text({dims});
  return text.substr(1, text.size() - 2);
}

// "[64, 512] and [512]"
inline std::string shapes_text_of_op(const Model& model, Row op) {
  std::string text;
  for (const analyze::Dims& each : shapes_of_op(model, op)) {
    if (!each.empty()) text += (text.empty() ? "" : " and ") + shape_text(each);
  }
  return text;
}

}  // namespace firelane::advise

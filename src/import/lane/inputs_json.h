// The inputs of an op, from the recorder's bytes (format/layout.h, InputKind) to the JSON
// texts that the model keeps, written as Kineto writes them.
#pragma once

#include <string>
#include <string_view>

namespace firelane::importer {

struct InputsJson {
  std::string dims;      // [[16, 512], [], []]
  std::string types;     // ["float", "Scalar", ""]
  std::string strides;   // [[512, 1], [], []]; "" when no tensor has strides
  std::string concrete;  // ["", "1", ""]
};

// False when the bytes do not fit together; `out` then holds what came before.
bool inputs_to_json(std::string_view blob, InputsJson& out);

// Which tensors they are (format/layout.h, kTensors), by input: [[tensor, storage, device type, device, dtype], null,
// [[...], ...]]; null for what is no tensor, and a sixth number, the layout, where it is not strided. False as above.
bool tensors_to_json(std::string_view words, std::string& out);

// "float" for 6: the name that torch's profiler gives c10::ScalarType number `dtype`.
std::string dtype_name(unsigned dtype);

}  // namespace firelane::importer

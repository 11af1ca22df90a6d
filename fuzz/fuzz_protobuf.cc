// Protobuf messages: XPlane files and Perfetto traces. Both begin with a field 1 that has a length.
#include <cstddef>
#include <cstdint>
#include <string>

#include "use_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (!file.starts_with('\n')) return 0;
  firelane::fuzz::load_and_use(std::move(file));
  return 0;
}

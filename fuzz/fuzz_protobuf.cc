// Protobuf messages: XPlane files and Perfetto traces, which begin with a field 1 that has a length, and execution
// traces of Chakra, which begin with the length of such a message, or of an empty one.
#include <cstddef>
#include <cstdint>
#include <string>

#include "use_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  const bool is_framed = file.size() > 1 && (file[0] == '\0' || file[1] == '\n');
  if (!file.starts_with('\n') && !is_framed) return 0;
  firelane::fuzz::load_and_use(std::move(file));
  return 0;
}

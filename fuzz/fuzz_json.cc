// Any bytes at the reader: JSON that is almost a trace, and everything else it may be handed.
#include <cstddef>
#include <cstdint>
#include <string>

#include "use_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  firelane::fuzz::load_and_use(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

#include "advise/machine.h"

#include <charconv>
#include <string_view>

#include "base/text.h"

namespace firelane::advise {

int64_t cores_allowed(const Model& model) {
  const MetadataEntry* machine = model.find_metadata("machine");
  if (machine == nullptr) return kNoNumber;
  for (const std::string_view key : {"\"cores_allowed\":", "\"cores\":"}) {
    size_t at = machine->json.find(key);
    if (at == std::string::npos) continue;
    at = machine->json.find_first_not_of(' ', at + key.size());
    int64_t cores = 0;
    const char* end = machine->json.data() + machine->json.size();
    if (at != std::string::npos && std::from_chars(machine->json.data() + at, end, cores).ec == std::errc{}) {
      return cores;
    }
  }
  return kNoNumber;
}

std::string stacks_flag(const Model& model) {
  const MetadataEntry* front = model.find_metadata("front");
  if (front == nullptr) return "with_stack=True";
  if (contains(front->json, "firelane record")) return "--stacks";
  return front->json == "\"firelane.profile\"" ? "stacks=True" : "with_stack=True";
}

}  // namespace firelane::advise

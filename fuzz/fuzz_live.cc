// What firelane sample and attach read of programs that they do not trust: memory with Python's objects, ELF files, the
// kernel's answers. The first byte says what the others are.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "live/elf.h"
#include "live/layout.h"
#include "live/line_table.h"
#include "live/merged_stack.h"
#include "live/native_reader.h"
#include "live/stack_reader.h"
#include "live/symbols.h"
#include "live/thread_samples.h"

namespace {

using namespace firelane::live;

constexpr uint64_t kAddress = 0x10000;  // aligned, as objects are

// A process whose memory is the input. Two looks: the second one trusts what the first one found.
void look_at_memory(std::span<const uint8_t> bytes, int minor) {
  const Layout* layout = layout_of({.minor = minor});
  auto reader = StackReader::at(Memory(bytes, kAddress), *layout, kAddress, kAddress + 8);
  if (!reader.ok()) return;
  std::vector<ThreadStack> seen;
  for (int look = 0; look < 2; ++look) {
    if (!reader.value().look(seen)) return;
  }
  for (const ThreadStack& each : seen) {
    ThreadStack again;
    (void)reader.value().look_again(each.thread, again);
    const std::vector<Frame>& python = reader.value().stacks().at(each.stack);
    for (const Frame& frame : python) (void)reader.value().functions().at(frame.function);
    const std::vector<NativeFrame> native(bytes.size() % 5, {.is_interpreter = bytes.size() % 3 != 0});
    (void)merge(python, native, bytes.size() % 2 != 0);
  }
}

void read_elf(std::span<const uint8_t> bytes) {
  static constexpr std::string_view kNames[] = {"_PyRuntime", "main"};
  (void)symbol_values(bytes, kNames);
  (void)segments_of(bytes);
  for (const ElfFunction& function : functions_of(bytes)) (void)readable_name(function.name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
    case 1:
    case 2:
    case 3: look_at_memory(rest, 10 + data[0] % 8); break;
    case 4: read_elf(rest); break;
    case 5: {
      WaitPlace place;
      (void)parse_wait_place({reinterpret_cast<const char*>(rest.data()), rest.size()}, place);
      break;
    }
    case 6: {
      Registers registers;
      StackCopy stack;
      uint64_t word = 0;
      if (parse_sample(rest.data(), rest.size(), registers, stack)) (void)stack.read_word(stack.start + 8, word);
      break;
    }
    default:
      for (const bool has_locations : {false, true}) (void)line_at(lines_of(rest, 7, has_locations), 3, 7);
  }
  return 0;
}

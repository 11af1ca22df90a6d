#include "read_file.h"

#include <isa-l/igzip_lib.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace firelane::bench {

void fail(const std::string& message) {
  std::fprintf(stderr, "bench: %s\n", message.c_str());
  std::exit(1);
}

std::string read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) fail(path + ": cannot be opened");
  std::fseek(file.get(), 0, SEEK_END);
  std::string bytes(static_cast<size_t>(std::ftell(file.get())), '\0');
  std::fseek(file.get(), 0, SEEK_SET);
  if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) fail(path + ": cannot be read");
  return bytes;
}

void inflate(std::string_view gzip, const std::function<void(std::string_view)>& visit) {
  std::vector<uint8_t> out(1 << 20);
  auto state = std::make_unique<inflate_state>();
  isal_inflate_init(state.get());
  state->crc_flag = ISAL_GZIP;
  state->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(gzip.data()));  // ISA-L does not write there
  state->avail_in = static_cast<uint32_t>(gzip.size());
  do {
    state->next_out = out.data();
    state->avail_out = static_cast<uint32_t>(out.size());
    if (isal_inflate(state.get()) != ISAL_DECOMP_OK) fail("the gzip data is damaged");
    visit({reinterpret_cast<const char*>(out.data()), out.size() - state->avail_out});
    if (state->block_state == ISAL_BLOCK_FINISH && state->avail_in > 0) {
      isal_inflate_reset(state.get());  // keeps next_in; the next member follows
      state->crc_flag = ISAL_GZIP;
    }
  } while (state->block_state != ISAL_BLOCK_FINISH);
}

std::string read_content(const std::string& path) {
  std::string bytes = read_file(path);
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  std::string content;
  inflate(bytes, [&](std::string_view part) { content += part; });
  return content;
}

}  // namespace firelane::bench

#include "ranks/part/part_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/crc32c.h"
#include "ranks/testing/generate.h"

namespace firelane::ranks {
namespace {

Part some_part() {
  Part part = testing::generate({.ranks = 2, .steps = 2}).parts[1];
  part.losses = {{"record.dropped_events", 7}};
  part.kernels = {{.name = "gemm",
                   .op = "aten::mm",
                   .calls = 10,
                   .total_ns = 12345,
                   .work = 99,
                   .module = "Linear_0",
                   .line = "train.py(3): step",
                   .shapes = "[[8, 512], [512, 64]]"}};
  part.device_state = {.sm_clock_mhz = 1980, .memory_clock_mhz = 3201, .power_watts = 690, .temperature_celsius = 71};
  part.groups[0].ranks_cut = true;
  return part;
}

TEST(PartFile, gives_back_what_was_written) {
  const Part part = some_part();
  const Result<Part> read = decode_part(encode_part(part), "p");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value(), part);
  EXPECT_EQ(decode_part(encode_part(Part{}), "p").value(), Part{});
}

TEST(PartFile, keeps_any_numbers_of_a_column) {
  Part part = some_part();
  part.collectives.work.back() = -(int64_t{1} << 55);
  part.collectives.work.front() = int64_t{1} << 55;
  EXPECT_EQ(decode_part(encode_part(part), "p").value(), part);
}

TEST(PartFile, begins_with_magic_and_version) {
  const std::string bytes = encode_part(Part{});
  EXPECT_EQ(bytes.substr(0, 12), std::string("FLRANKS\n\1\0\0\0", 12));
  EXPECT_TRUE(is_part(bytes));
}

TEST(PartFile, refuses_every_cut) {
  const std::string bytes = encode_part(some_part());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(decode_part(std::string_view(bytes).substr(0, cut), "p").ok()) << "cut at byte " << cut;
  }
}

TEST(PartFile, refuses_every_flipped_byte_after_the_version) {
  const std::string good = encode_part(testing::generate({.ranks = 2, .steps = 1, .layers = 1}).parts[0]);
  for (size_t at = kPartHeaderBytes; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x20);
    EXPECT_FALSE(decode_part(bytes, "p").ok()) << "byte " << at;
  }
}

TEST(PartFile, says_which_version_it_reads) {
  std::string bytes = encode_part(Part{});
  bytes[8] = 9;
  EXPECT_EQ(decode_part(bytes, "old.part").error().message,
            "old.part: a part of version 9, this firelane reads version 1; map the trace again with this firelane");
}

TEST(PartFile, a_few_bytes_cannot_ask_for_much_memory) {
  // A table of 2^31 rows of constants, with a good checksum.
  std::string payload(16, '\0');
  const uint64_t rows = uint64_t{1} << 31;
  const uint64_t columns = 24;
  std::memcpy(payload.data(), &rows, 8);
  std::memcpy(payload.data() + 8, &columns, 8);
  for (uint64_t i = 0; i < columns; ++i) payload += std::string(10, '\0');
  std::string section("\3\0\0\0", 4);
  const uint64_t size = payload.size();
  section.append(reinterpret_cast<const char*>(&size), 8);
  const uint32_t sum = crc32c(payload, crc32c(section));
  section.append(reinterpret_cast<const char*>(&sum), 4);
  std::string file = encode_part(Part{});
  file.insert(kPartHeaderBytes, section + payload);
  EXPECT_FALSE(decode_part(file, "p").ok());
}

TEST(PartFile, skips_sections_that_it_does_not_know) {
  std::string section("\x63\0\0\0\2\0\0\0\0\0\0\0", 12);
  const uint32_t sum = crc32c("hi", crc32c(section));
  section.append(reinterpret_cast<const char*>(&sum), 4);
  std::string file = encode_part(Part{});
  file.insert(kPartHeaderBytes, section + "hi");
  EXPECT_TRUE(decode_part(file, "p").ok());
}

}  // namespace
}  // namespace firelane::ranks

// varint.h and crc32c.h: round trips, golden bytes, ends of input.
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/varint.h"

namespace firelane {
namespace {

TEST(Varint, numbers_come_back_at_every_width) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const uint64_t n : {uint64_t{1} << bit, (uint64_t{1} << bit) - 1, ~(uint64_t{1} << bit)}) {
      std::string out;
      append_varint(out, n);
      ByteReader reader(out);
      EXPECT_EQ(reader.varint(), n);
      EXPECT_TRUE(reader.ok() && reader.empty());
      EXPECT_EQ(unzigzag(zigzag(static_cast<int64_t>(n))), static_cast<int64_t>(n));
    }
  }
}

TEST(Varint, three_hundred_is_ac_02) {
  std::string out;
  append_varint(out, 300);
  EXPECT_EQ(out, "\xAC\x02");
}

TEST(Varint, a_number_cut_off_or_overlong_fails_and_stays_failed) {
  ByteReader cut("\xAC");
  EXPECT_EQ(cut.varint(), 0u);
  EXPECT_FALSE(cut.ok());
  ByteReader overlong("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02 more");
  overlong.varint();
  EXPECT_FALSE(overlong.ok());
  EXPECT_EQ(overlong.text(), "");
}

TEST(Crc32c, the_standard_check_value_and_any_split_agree) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  const std::string text = "thirty-two bytes of zeros would do as well";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.substr(cut), crc32c(text.substr(0, cut))), crc32c(text)) << cut;
  }
}

}  // namespace
}  // namespace firelane

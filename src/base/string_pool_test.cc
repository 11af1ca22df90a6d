#include "base/string_pool.h"

#include <gtest/gtest.h>

#include <string>

namespace firelane {
namespace {

TEST(StringPool, same_text_gives_the_same_id_and_views_stay_valid_while_it_grows) {
  StringPool pool;
  const StringId first = pool.intern("aten::mm");
  const std::string_view view = pool.view(first);
  for (int i = 0; i < 10000; ++i) pool.intern("name " + std::to_string(i));
  EXPECT_EQ(pool.intern("aten::mm"), first);
  EXPECT_EQ(view, "aten::mm");
  EXPECT_EQ(pool.view(pool.find("name 9999")), "name 9999");
  EXPECT_EQ(pool.size(), 10002u);  // with the empty string
}

TEST(StringPool, the_empty_string_is_id_zero_and_unknown_text_is_not_found) {
  StringPool pool;
  EXPECT_EQ(pool.intern(""), kNoString);
  EXPECT_EQ(pool.find("never seen"), kNoString);
  EXPECT_EQ(pool.view(kNoString), "");
}

TEST(StringPool, keeps_texts_longer_than_a_block_and_texts_with_zero_bytes) {
  StringPool pool;
  const std::string large(3 << 20, 'x');
  const std::string zeros("a\0b", 3);
  EXPECT_EQ(pool.view(pool.intern(large)), large);
  EXPECT_EQ(pool.view(pool.intern(zeros)), zeros);
  EXPECT_NE(pool.intern(zeros), pool.intern("a"));
}

}  // namespace
}  // namespace firelane

#include "base/visible_text.h"

#include <gtest/gtest.h>

namespace firelane {
namespace {

TEST(VisibleText, leaves_ordinary_names_alone) {
  EXPECT_EQ(visible_text("void at::native::f<float, 4>(…) 矩阵"), "void at::native::f<float, 4>(…) 矩阵");
}

TEST(VisibleText, shows_controls_reordering_marks_and_bad_bytes_as_escapes) {
  EXPECT_EQ(visible_text(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(visible_text("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(visible_text("\xc2\x9b"
                         "31m"),
            "\\x9b31m");  // C1 control sequence introducer
  EXPECT_EQ(visible_text("\xe2\x80\xae"
                         "evil"),
            "\\u202eevil");
  EXPECT_EQ(visible_text("\xf3\xa0\x81\x81"), "\\U000e0041");
  EXPECT_EQ(visible_text("\xc3("), "\\xc3(");
}

TEST(DisplayWidth, counts_columns_not_bytes) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("矩阵"), 4u);
  EXPECT_EQ(display_width("e\xcc\x81"), 1u);
}

TEST(ShortenMiddle, keeps_both_ends_and_never_exceeds_the_width) {
  EXPECT_EQ(shorten_middle("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shorten_middle("abcdefghij", 7), "abcd…ij");
  EXPECT_LE(display_width(shorten_middle("矩阵矩阵矩阵", 6)), 6u);
}

}  // namespace
}  // namespace firelane

#include "base/shell_quoted.h"

#include <gtest/gtest.h>

namespace firelane {
namespace {

TEST(ShellQuoted, words_that_need_no_quotes_get_none) {
  for (const char* word : {"run.lane", "/a/b-c_d/e.json.gz", "--flag=1,2", "user@host:50%+"})
    EXPECT_EQ(shell_quoted(word), word);
}

TEST(ShellQuoted, what_a_shell_would_take_apart_is_one_word) {
  EXPECT_EQ(shell_quoted("my run.lane"), "'my run.lane'");
  EXPECT_EQ(shell_quoted("it's.lane"), "'it'\\''s.lane'");
  EXPECT_EQ(shell_quoted("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_quoted("~/a"), "'~/a'");
  EXPECT_EQ(shell_quoted("a*b"), "'a*b'");
  EXPECT_EQ(shell_quoted("spur-\u00fc"), "'spur-\u00fc'");
  EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace firelane

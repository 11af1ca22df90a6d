#include <gtest/gtest.h>

#include <string>

#include "serve/api.h"

namespace firelane::serve {
namespace {

TEST(AnswerCache, makes_an_answer_once_and_forgets_the_oldest) {
  AnswerCache cache;
  int made = 0;
  const auto make = [&] {
    ++made;
    return Answer{.body = "x"};
  };
  cache.get("a", make);
  cache.get("a", make);
  EXPECT_EQ(made, 1);
  for (int i = 0; i < 300; ++i) cache.get(std::to_string(i), [] { return Answer{}; });
  cache.get("a", make);
  EXPECT_EQ(made, 2);
  cache.get("bad", [&] {
    ++made;
    return refusal(400, "no");
  });
  cache.get("bad", [&] {
    ++made;
    return refusal(400, "no");
  });
  EXPECT_EQ(made, 4);
}

TEST(AnswerCache, holds_a_bounded_number_of_bytes) {
  AnswerCache cache;
  int made = 0;
  const auto make = [&] {
    ++made;
    return Answer{.body = std::string(size_t{40} << 20, 'x')};
  };
  cache.get("a", make);
  cache.get("a", make);
  EXPECT_EQ(made, 1);
  cache.get("b", make);  // both together are too many
  cache.get("b", make);
  EXPECT_EQ(made, 2);
  cache.get("a", make);
  EXPECT_EQ(made, 3);
}

}  // namespace
}  // namespace firelane::serve

// Dense gradients of tables: told where few of many rows are looked up.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

class Clicks : public WrittenProgram<Clicks> {
 public:
  Clicks& step(int64_t rows) {
    const std::string count = std::to_string(rows);
    const std::string table = "[" + count + ", 32]";
    op("aten::embedding", 40, "[" + table + ", [1000]]", R"(["", ""])");
    op("aten::linear", 300, "[[1000, 32], [64, 32]]", R"(["", ""])");
    const double from = at_;
    at_ += 2;
    op("aten::embedding_dense_backward", 400, "[[1000, 32], [1000], []]", R"(["", "", ")" + count + R"("])");
    builder_.op("autograd::engine::evaluate_function: EmbeddingBackward0", {.start_us = from, .end_us = at_});
    at_ += 2;
    const double update = at_;
    at_ += 2;
    op("aten::add_", 600, "[" + table + ", " + table + "]", R"(["", ""])");
    builder_.annotation("Optimizer.step#SGD.step", {.start_us = update, .end_us = at_});
    return end_step();
  }

 private:
  void op(std::string_view name, double us, const std::string& dims, const std::string& numbers) {
    builder_.op(name, {.start_us = at_,
                       .end_us = at_ + us,
                       .dims = dims,
                       .types = R"(["float", "float", "Scalar"])",
                       .concrete = numbers});
    at_ += us + 2;
  }
};

Judged clicked(int64_t rows) {
  Clicks program;
  for (int i = 0; i < 4; ++i) program.step(rows);
  return program.judged();
}

TEST(DenseGradients, a_table_of_which_a_batch_reads_little_is_told_with_its_update) {
  const Judged found = clicked(60'000);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "dense-gradients");
  EXPECT_NE(found.findings[0].title.find("a table of 60000 rows (7.3 MiB) is dense, for at most 1000"),
            std::string::npos)
      << found.findings[0].title;
  EXPECT_GT(found.findings[0].gain.middle_ns(), 800'000) << "the gradient and the update";
}

TEST(DenseGradients, a_small_table_that_is_read_whole_is_none) {
  EXPECT_EQ(find(clicked(2'000), "dense-gradients"), nullptr);
}

}  // namespace
}  // namespace firelane::advise

// Shapes and types of an op's inputs: what a broken one may not do.
#include "analyze/ops/op_tensors.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

TEST(OpTensors, a_shape_that_no_memory_holds_does_not_overflow) {
  const Model model = TraceBuilder()
                          .op("aten::relu", {.start_us = 0,
                                             .end_us = 1,
                                             .dims = "[[4611686018427387904, 515, 3689348814741910032]]",
                                             .types = R"(["float"])"})
                          .build();
  const std::vector<OpTensor> inputs = input_tensors(model, 0);
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].elements, int64_t{1} << 50);
  EXPECT_EQ(inputs[0].bytes, int64_t{1} << 50);
}

TEST(OpTensors, of_many_ops_are_those_of_each) {
  TraceBuilder builder;
  const std::string_view dims[] = {"[[2, 3], [3, 4]]", "[[2, 3], []]", "[]"};
  const std::string_view types[] = {R"(["float", "c10::Half"])", R"(["long int", "Scalar"])"};
  double at_us = 0;
  for (const std::string_view shapes : dims) {
    for (const std::string_view of : types) {
      for (int again = 0; again < 2; ++again, at_us += 2) {
        builder.op("aten::mm", {.start_us = at_us, .end_us = at_us + 1, .dims = shapes, .types = of});
      }
    }
  }
  const Model model = builder.op("aten::relu", {.start_us = at_us, .end_us = at_us + 1}).build();
  InputTensors tensors(model);
  for (Row row = 0; row < model.host_slices.size(); ++row) {
    const std::vector<OpTensor> expected = input_tensors(model, row);
    const std::vector<OpTensor>& found = tensors.of(row);
    ASSERT_EQ(found.size(), expected.size()) << row;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].dims, expected[i].dims) << row;
      EXPECT_EQ(found[i].bytes, expected[i].bytes) << row;
    }
  }
  EXPECT_TRUE(tensors.of(kNoRow).empty());
}

}  // namespace
}  // namespace firelane::analyze

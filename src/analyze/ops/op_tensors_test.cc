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

}  // namespace
}  // namespace firelane::analyze

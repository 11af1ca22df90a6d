#include "model/same.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane {
namespace {

TraceBuilder two_ops() {
  TraceBuilder builder;
  builder.op("aten::mm", {.start_us = 0, .end_us = 20, .external_id = 1, .dims = "[[2, 3]]"})
      .op("aten::add", {.start_us = 30, .end_us = 40, .external_id = 2})
      .kernel("gemm", {.start_us = 5, .end_us = 9, .external_id = 1, .grid = 8});
  return builder;
}

TEST(Same, order_of_reading_does_not_matter) {
  Model other = TraceBuilder()
                    .kernel("gemm", {.start_us = 5, .end_us = 9, .external_id = 1, .grid = 8})
                    .op("aten::add", {.start_us = 30, .end_us = 40, .external_id = 2})
                    .op("aten::mm", {.start_us = 0, .end_us = 20, .external_id = 1, .dims = "[[2, 3]]"})
                    .build();
  EXPECT_EQ(first_difference(two_ops().build(), other), std::nullopt);
}

TEST(Same, the_first_difference_is_named) {
  const Model model = two_ops().build();
  const auto difference_after = [&](const std::function<void(Model&)>& change) {
    Model other = two_ops().build();
    change(other);
    return first_difference(model, other).value_or("same");
  };
  EXPECT_EQ(difference_after([](Model& m) { m.host_slices.name[1] = m.strings.intern("aten::sub"); }),
            "host_slices.name[1]: aten::add / aten::sub");
  EXPECT_EQ(difference_after([](Model& m) { m.op_details.input_dims[0] = kNoString; }),
            "op input_dims of slice[0]: [[2, 3]] / none");
  EXPECT_EQ(difference_after([](Model& m) { m.kernel_details.grid_x[0] = 9; }), "kernel grid_x of slice[0]: 8 / 9");
  EXPECT_EQ(difference_after([](Model& m) { m.device_slices.op[0] = kNoRow; }), "device_slices.op[0]: 0 / none");
  EXPECT_EQ(difference_after([](Model& m) { m.info.base_time_ns = 1; }), "info.base_time_ns[0]: 0 / 1");
  EXPECT_EQ(difference_after([](Model& m) { m.info.metadata.push_back({"with_stack", "1"}); }),
            "info.metadata[0]: 0 / 1");
}

TEST(Same, what_describes_the_file_is_left_out) {
  Model model = two_ops().build();
  model.info.path = "x";
  model.info.file_bytes = 7;
  model.info.metadata.push_back({"traceName", "\"x\""});
  model.losses[Stat::kTruncated] = 1;
  EXPECT_EQ(first_difference(model, two_ops().build()), std::nullopt);
}

}  // namespace
}  // namespace firelane

// Copies by hand: casts there and back, a change of layout, a copy to the device.
#include "analyze/compute/copies.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

class CopiesBuilder {
 public:
  // A cast of the backward pass: inside of the node that the forward's cast left behind.
  CopiesBuilder& backward(std::string_view types) {
    const double at = static_cast<double>(next_) * 20;
    trace_.op("ToCopyBackward0", {.start_us = at - 1, .end_us = at + 14});
    return copy(types);
  }
  CopiesBuilder& copy(std::string_view types, std::string_view strides = "[[8, 1], [8, 1]]",
                      std::string_view device_name = {}) {
    const double at = static_cast<double>(next_) * 20;
    trace_.op("aten::to", {.start_us = at, .end_us = at + 12})
        .op("aten::copy_", {.start_us = at + 1,
                            .end_us = at + 10,
                            .external_id = next_,
                            .dims = "[[4, 8], [4, 8]]",
                            .types = types,
                            .strides = strides})
        .call("cudaLaunchKernel", {.start_us = at + 2, .end_us = at + 3, .correlation = next_, .external_id = next_});
    if (device_name.empty()) {
      trace_.kernel("elementwise_kernel",
                    {.start_us = at + 4, .end_us = at + 6, .correlation = next_, .external_id = next_});
    } else {
      trace_.copy(device_name, {.start_us = at + 4, .end_us = at + 6, .correlation = next_, .external_id = next_});
    }
    ++next_;
    return *this;
  }
  CopyTable table() {
    model_ = trace_.build();
    return copy_table(model_);
  }

 private:
  TraceBuilder trace_;
  Model model_;
  int64_t next_ = 1;
};

TEST(Copies, a_cast_that_is_undone_is_ping_pong) {
  const CopyTable table = CopiesBuilder()
                              .copy(R"(["c10::BFloat16", "float"])")
                              .copy(R"(["float", "c10::BFloat16"])")
                              .copy(R"(["c10::BFloat16", "float"])")
                              .table();
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].kind, CopyKind::kCast);
  EXPECT_EQ(table.rows[0].from, "fp32");
  EXPECT_EQ(table.rows[0].to, "bf16");
  EXPECT_EQ(table.rows[0].calls, 2);
  EXPECT_EQ(table.rows[0].bytes, 2 * 32 * (2 + 4));
  EXPECT_EQ(table.rows[0].shape, "[4, 8]");
  EXPECT_EQ(table.rows[1].ping_pong_calls, 1);
  EXPECT_EQ(table.device_ns, 6'000);
}

TEST(Copies, the_backward_of_ping_pong_is_part_of_it_and_that_of_autocast_is_not) {
  constexpr std::string_view kDown = R"(["c10::BFloat16", "float"])";
  constexpr std::string_view kUp = R"(["float", "c10::BFloat16"])";
  EXPECT_EQ(CopiesBuilder().copy(kDown).copy(kUp).backward(kDown).backward(kUp).table().ping_pong_ops.size(), 4u);
  EXPECT_EQ(CopiesBuilder().backward(kDown).backward(kUp).table().ping_pong_ops.size(), 0u);
}

TEST(Copies, casts_to_one_type_only_are_no_ping_pong) {
  const CopyTable table =
      CopiesBuilder().copy(R"(["c10::BFloat16", "float"])").copy(R"(["c10::BFloat16", "float"])").table();
  EXPECT_EQ(table.rows.at(0).ping_pong_calls, 0);
}

TEST(Copies, other_strides_are_a_change_of_layout) {
  const CopyTable table = CopiesBuilder().copy(R"(["float", "float"])", "[[8, 1], [1, 4]]").table();
  EXPECT_EQ(table.rows.at(0).kind, CopyKind::kLayout);
}

TEST(Copies, what_the_device_did_tells_transfers) {
  const CopyTable table =
      CopiesBuilder().copy(R"(["float", "float"])", "[[8, 1], [8, 1]]", "Memcpy HtoD (Pageable -> Device)").table();
  EXPECT_EQ(table.rows.at(0).kind, CopyKind::kToDevice);
}

}  // namespace
}  // namespace firelane::analyze

// Chains by hand: gelu and dropout on the same tensor, with and without something between.
#include "analyze/compute/fusion.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

constexpr std::string_view kPointwise = "void at::native::vectorized_elementwise_kernel<4, Functor<float>>";
constexpr std::string_view kReduce = "void at::native::reduce_kernel<512, 1, ReduceOp<float>>";
constexpr std::string_view kNorm = "void at::native::batch_norm_transform_input_channels_last_kernel<float>";
constexpr std::string_view kMatmul = "ampere_sgemm_128x64_nn";

class FusionBuilder {
 public:
  FusionBuilder& kernel(std::string_view op, std::string_view name, std::string_view dims, double duration_us = 10) {
    const double at = static_cast<double>(next_) * 20;
    trace_
        .op(op,
            {.start_us = at, .end_us = at + 5, .external_id = next_, .dims = dims, .types = R"(["float", "float"])"})
        .call("cudaLaunchKernel", {.start_us = at + 1, .end_us = at + 2, .correlation = next_, .external_id = next_})
        .kernel(name, {.start_us = at + 3, .end_us = at + 3 + duration_us, .correlation = next_, .external_id = next_});
    ++next_;
    return *this;
  }
  FusionBuilder& on_h200() {
    trace_.device({.id = 0, .name = "NVIDIA H200"});
    return *this;
  }
  Model build() { return trace_.build(); }

 private:
  TraceBuilder trace_;
  int64_t next_ = 1;
};

TEST(Fusion, neighbours_on_the_same_data_are_a_chain) {
  const Model model = FusionBuilder()
                          .kernel("aten::gelu", kPointwise, "[[1000]]", 10)
                          .kernel("aten::mul", kPointwise, "[[1000]]", 4)
                          .kernel("aten::sum", kReduce, "[[1000]]", 6)
                          .build();
  const FusionTable table = fusion_table(model);
  ASSERT_EQ(table.chains.size(), 1u);
  const FusionChain& chain = table.chains[0];
  EXPECT_EQ(chain.members.size(), 3u);
  EXPECT_EQ(chain.times, 1);
  EXPECT_EQ(chain.saved_launches, 2);
  // gelu and mul read and write 4000 bytes each, sum reads 4000: 20000. One kernel reads 4000, and writes what mul
  // does.
  EXPECT_EQ(chain.bytes, 20'000);
  EXPECT_EQ(chain.fused_bytes, 8'000);
  EXPECT_EQ(chain.saved_bytes, 12'000);
  EXPECT_EQ(chain.device_ns, 20'000);
  EXPECT_EQ(chain.saved_ns, 10'000);  // the device is not known: the longest stays
  EXPECT_EQ(table.chained_kernels, 3);
}

TEST(Fusion, the_same_chain_again_is_the_same_row) {
  FusionBuilder trace;
  for (int i = 0; i < 3; ++i) {
    trace.kernel("aten::gelu", kPointwise, "[[1000]]").kernel("aten::mul", kPointwise, "[[1000]]");
    trace.kernel("aten::mm", kMatmul, "[[1000]]");
  }
  const Model model = trace.build();
  const FusionTable table = fusion_table(model);
  ASSERT_EQ(table.chains.size(), 1u);
  EXPECT_EQ(table.chains[0].times, 3);
  EXPECT_EQ(table.chains[0].slices.size(), 6u);
  EXPECT_EQ(table.chains[0].example.size(), 2u);
}

TEST(Fusion, a_matmul_or_another_size_between_ends_it) {
  EXPECT_TRUE(fusion_table(FusionBuilder()
                               .kernel("aten::gelu", kPointwise, "[[1000]]")
                               .kernel("aten::mm", kMatmul, "[[1000]]")
                               .kernel("aten::mul", kPointwise, "[[1000]]")
                               .build())
                  .chains.empty());
  EXPECT_TRUE(fusion_table(FusionBuilder()
                               .kernel("aten::gelu", kPointwise, "[[1000]]")
                               .kernel("aten::mul", kPointwise, "[[999]]")
                               .build())
                  .chains.empty());
}

TEST(Fusion, a_norm_by_hand_is_one_kernel) {
  // x * rsqrt(mean(x * x)) on an H200, 1000 rows of 4000 floats, 16 MB: a compiler reads x and writes the result.
  const FusionTable table = fusion_table(FusionBuilder()
                                             .on_h200()
                                             .kernel("aten::pow", kPointwise, "[[1000, 4000]]", 30)
                                             .kernel("aten::mean", kReduce, "[[1000, 4000]]", 20)
                                             .kernel("aten::rsqrt", kPointwise, "[[1000, 1]]", 2)
                                             .kernel("aten::mul", kPointwise, "[[1000, 4000]]", 30)
                                             .build());
  EXPECT_TRUE(table.chains.empty() || table.chains[0].members.size() == 2u) << "nothing tells that rsqrt's is the mean";
  const FusionTable whole = fusion_table(FusionBuilder()
                                             .on_h200()
                                             .kernel("aten::pow", kPointwise, "[[1000, 4000]]", 30)
                                             .kernel("aten::mean", kReduce, "[[1000, 4000]]", 20)
                                             .kernel("aten::mul", kPointwise, "[[1000, 4000], [1000, 1]]", 30)
                                             .build());
  ASSERT_EQ(whole.chains.size(), 1u);
  EXPECT_EQ(whole.chains[0].members.size(), 3u);
  EXPECT_EQ(whole.chains[0].fused_bytes, 32'000'000);
  // 80 us, less 32 MB at 70% of 4800 GB/s: 9.5 us.
  EXPECT_NEAR(static_cast<double>(whole.chains[0].saved_ns), 70'476, 2);
}

TEST(Fusion, of_other_inputs_half_come_from_outside) {
  // a + b, then + c, each of 4 MB: one kernel reads a and b, c with even chances, and writes the sum.
  const FusionTable table = fusion_table(FusionBuilder()
                                             .kernel("aten::add", kPointwise, "[[1000, 1000], [1000, 1000]]")
                                             .kernel("aten::add", kPointwise, "[[1000, 1000], [1000, 1000]]")
                                             .build());
  ASSERT_EQ(table.chains.size(), 1u);
  EXPECT_EQ(table.chains[0].bytes, 24'000'000);
  EXPECT_EQ(table.chains[0].fused_bytes, 14'000'000);
}

TEST(Fusion, statistics_over_all_rows_read_twice) {
  // Batch norm and relu on 4 MB: the statistics must be complete before any row is done.
  const FusionTable table = fusion_table(FusionBuilder()
                                             .kernel("aten::native_batch_norm", kNorm, "[[10, 100, 1000]]")
                                             .kernel("aten::relu", kPointwise, "[[10, 100, 1000]]")
                                             .build());
  ASSERT_EQ(table.chains.size(), 1u);
  EXPECT_EQ(table.chains[0].fused_bytes, 12'000'000);
}

TEST(Fusion, without_shapes_nothing_is_claimed) {
  const Model model = FusionBuilder().kernel("aten::gelu", kPointwise, "").kernel("aten::mul", kPointwise, "").build();
  const FusionTable table = fusion_table(model);
  EXPECT_TRUE(table.chains.empty());
  EXPECT_EQ(table.without_shapes, 2);
}

}  // namespace
}  // namespace firelane::analyze

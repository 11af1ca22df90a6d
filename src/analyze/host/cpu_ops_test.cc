// Operators on a CPU: what they are by name, and which of them one loop could do.
#include "analyze/host/cpu_ops.h"

#include <gtest/gtest.h>

#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

// One op after another, 100 us each.
class Program {
 public:
  Program& op(std::string_view name, std::string_view dims = "[[1000]]") {
    builder_.op(name, {.start_us = at_, .end_us = at_ + 100, .dims = dims, .types = R"(["float"])"});
    at_ += 110;
    return *this;
  }
  std::vector<std::vector<CpuOp>> chains() {
    const Model model = builder_.build();
    const HostTime host = host_time(model);
    return fusible_chains(model, outermost_ops(model, host.chains[0], {0, 1'000'000'000}));
  }

 private:
  TraceBuilder builder_;
  double at_ = 0;
};

TEST(CpuOps, in_place_forms_are_what_their_plain_forms_are) {
  EXPECT_EQ(op_class("aten::mul_"), KernelClass::kPointwise);
  EXPECT_EQ(op_class("aten::_softmax"), KernelClass::kNormalization);
  EXPECT_EQ(op_class("aten::nobody_knows"), KernelClass::kOther);
  EXPECT_TRUE(is_view_op("aten::squeeze_"));
}

TEST(CpuOps, pointwise_operators_on_as_many_elements_are_a_chain_through_views) {
  const auto chains = Program().op("aten::mul").op("aten::view").op("aten::tanh").op("aten::add_").chains();
  ASSERT_EQ(chains.size(), 1U);
  EXPECT_EQ(chains[0].size(), 3U);
}

TEST(CpuOps, a_matmul_or_another_size_ends_a_chain) {
  EXPECT_TRUE(Program().op("aten::mul").op("aten::mm").op("aten::add").chains().empty());
  EXPECT_TRUE(Program().op("aten::mul").op("aten::add", "[[999]]").chains().empty());
  EXPECT_TRUE(Program().op("aten::mul").op("aten::add", "[[100]]").chains().empty()) << "nothing was reduced to that";
}

TEST(CpuOps, a_norm_by_hand_is_one_chain_with_what_it_computes_of_each_row) {
  const auto chains = Program()
                          .op("aten::pow", "[[100, 10]]")
                          .op("aten::mean", "[[100, 10]]")
                          .op("aten::add", "[[100, 1]]")
                          .op("aten::rsqrt", "[[100, 1]]")
                          .op("aten::mul", "[[100, 10], [100, 1]]")
                          .op("aten::mul", "[[7, 10]]")
                          .chains();
  ASSERT_EQ(chains.size(), 1U);
  EXPECT_EQ(chains[0].size(), 5U);
}

TEST(CpuOps, without_shapes_nothing_is_known_to_be_the_same_data) {
  EXPECT_TRUE(Program().op("aten::mul", "").op("aten::add", "").chains().empty());
}

}  // namespace
}  // namespace firelane::analyze

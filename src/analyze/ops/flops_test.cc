#include "analyze/ops/flops.h"

#include <gtest/gtest.h>

#include "analyze/ops/op_inputs.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

int64_t by_torch(std::string_view name, std::string_view dims, std::string_view types = "",
                 std::string_view concrete = "") {
  return compute_flops(name, dims, types, concrete).torch_flops;
}
int64_t by_us(std::string_view name, std::string_view dims, std::string_view types = "",
              std::string_view concrete = "") {
  return compute_flops(name, dims, types, concrete).op_flops;
}

TEST(Flops, matrix_products_are_two_per_multiply_add) {
  EXPECT_EQ(by_torch("aten::mm", "[[2, 3], [3, 4]]"), 48);
  EXPECT_EQ(by_torch("aten::addmm", "[[4], [2, 3], [3, 4], [], []]"), 48);
  EXPECT_EQ(by_torch("aten::bmm", "[[5, 2, 3], [5, 3, 4]]"), 240);
  EXPECT_EQ(by_torch("aten::baddbmm", "[[5, 2, 4], [5, 2, 3], [5, 3, 4], [], []]"), 240);
  EXPECT_EQ(by_torch("aten::mm", "[[2, 0], [0, 4]]"), 0);
}

TEST(Flops, elementwise_ops_are_one_per_element_of_the_first_tensor) {
  EXPECT_EQ(by_torch("aten::mul", "[[2, 3], [3]]", R"(["float", "float"])"), 6);
  EXPECT_EQ(by_torch("aten::add", "[[], [], []]", R"(["float", "float", "Scalar"])"), 1);  // a tensor of no dimensions
  EXPECT_EQ(by_torch("aten::add", "[[], [4], []]", R"(["Scalar", "float", "Scalar"])"), 0);
}

TEST(Flops, convolutions_count_the_places_of_the_output) {
  constexpr auto kDims = "[[2, 3, 16, 16], [8, 3, 3, 3], [8], [], [], [], []]";
  constexpr auto kSame = R"(["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"])";
  constexpr auto kHalf = R"(["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "1"])";
  EXPECT_EQ(by_torch("aten::conv2d", kDims, "", kSame), 2 * 2 * 16 * 16 * 3 * 3 * 3 * 8);
  EXPECT_EQ(by_torch("aten::conv2d", kDims, "", kHalf), 2 * 2 * 7 * 7 * 3 * 3 * 3 * 8);
  EXPECT_EQ(by_torch("aten::conv2d", kDims, "", R"(["", "", "", "[1, 1]", "", "[1, 1]", "1"])"), 0);  // padding="same"
  EXPECT_EQ(by_torch("aten::conv2d", kDims), 0);  // an old trace without concrete inputs
  EXPECT_EQ(by_torch("aten::mkldnn_convolution", kDims, "", kSame), 0);
  EXPECT_EQ(by_us("aten::mkldnn_convolution", kDims, "", kSame), 2 * 2 * 16 * 16 * 3 * 3 * 3 * 8);
}

TEST(Flops, convolutions_of_other_ranks_groups_and_directions) {
  // 4 groups: weight [8, 1, 3]; length 10 -> 8
  EXPECT_EQ(by_us("aten::conv1d", "[[2, 4, 10], [8, 1, 3], []]", "", R"(["", "", "", "[1]", "[0]", "[1]", "4"])"),
            2 * 2 * 8 * 8 * 1 * 3);
  EXPECT_EQ(by_us("aten::conv3d", "[[1, 2, 4, 4, 4], [3, 2, 2, 2, 2], []]", "",
                  R"(["", "", "", "[2, 2, 2]", "[0, 0, 0]", "[1, 1, 1]", "1"])"),
            2 * 1 * 8 * 3 * 2 * 8);
  EXPECT_EQ(by_us("aten::conv_transpose2d", "[[2, 3, 5, 5], [3, 8, 3, 3], []]", "",
                  R"(["", "", "", "[2, 2]", "[0, 0]", "[0, 0]", "1", "[1, 1]"])"),
            2 * 2 * 25 * 3 * 8 * 9);
  EXPECT_EQ(by_us("aten::convolution", "[[2, 3, 5, 5], [3, 8, 3, 3], []]", "",
                  R"(["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"])"),
            2 * 2 * 25 * 3 * 8 * 9);
}

TEST(Flops, convolution_backward_counts_each_gradient_that_is_asked_for) {
  constexpr auto kDims = "[[2, 8, 14, 14], [2, 3, 16, 16], [8, 3, 3, 3], [], [], [], [], [], [], [], []]";
  const int64_t forward = 2 * 2 * 14 * 14 * 8 * 3 * 9;
  const auto masked = [](std::string_view mask) {
    return R"(["", "", "", "[8]", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1", ")" + std::string(mask) +
           R"("])";
  };
  EXPECT_EQ(by_us("aten::convolution_backward", kDims, "", masked("[True, True, True]")), 2 * forward);
  EXPECT_EQ(by_us("aten::convolution_backward", kDims, "", masked("[False, True, True]")), forward);
}

TEST(Flops, linear_and_matmul_of_any_rank) {
  EXPECT_EQ(by_us("aten::linear", "[[4, 8, 16], [32, 16], [32]]"), 2 * 4 * 8 * 16 * 32);
  EXPECT_EQ(by_us("aten::matmul", "[[6, 1, 2, 3], [5, 3, 4]]"), 2 * 6 * 5 * 2 * 3 * 4);
  EXPECT_EQ(by_us("aten::matmul", "[[3], [3]]"), 6);
  EXPECT_EQ(by_us("aten::mv", "[[2, 3], [3]]"), 12);
}

TEST(Flops, attention_counts_scores_and_values_and_its_backward_five_products) {
  constexpr auto kHeadsSecond = "[[2, 4, 10, 16], [2, 4, 12, 16], [2, 4, 12, 8]]";
  const int64_t scores = 2 * 2 * 4 * 10 * 12;
  EXPECT_EQ(by_us("aten::scaled_dot_product_attention", kHeadsSecond), scores * (16 + 8));
  EXPECT_EQ(by_us("aten::_efficient_attention_forward", "[[2, 10, 4, 16], [2, 12, 4, 16], [2, 12, 4, 8]]"),
            scores * (16 + 8));
  EXPECT_EQ(by_us("aten::_scaled_dot_product_flash_attention_backward",
                  "[[2, 4, 10, 8], [2, 4, 10, 16], [2, 4, 12, 16], [2, 4, 12, 8]]"),
            scores * (3 * 16 + 2 * 8));
}

TEST(Flops, absurd_sizes_give_nothing_instead_of_a_wrong_number) {
  EXPECT_EQ(by_us("aten::mm", "[[9000000000000000000, 2], [2, 9]]"), 0);
  EXPECT_EQ(by_us("aten::mm", "[[-3, 2], [2, 9]]"), 0);
  EXPECT_EQ(by_us("aten::mm", "[[3, 2"), 0);
  EXPECT_EQ(by_us("aten::mm", ""), 0);
}

TEST(Flops, sums_over_broken_shapes_do_not_overflow) {
  TraceBuilder builder;
  for (int i = 0; i < 9; ++i) {
    builder.op("aten::mm",
               {.start_us = i * 10.0, .end_us = i * 10.0 + 5, .dims = "[[1048576, 1048576], [1048576, 524288]]"});
  }
  const Model model = builder.build();
  FlopsTable flops(model);
  EXPECT_EQ(flops.of(0).op_flops, int64_t{1} << 60);
  int64_t sum = int64_t{1} << 60;
  for (Row row = 1; row < 9; ++row) sum += flops.of(row).op_flops;
  EXPECT_EQ(sum, int64_t{1} << 60);
}

TEST(OpInputs, dims_read_as_torch_reports_them) {
  EXPECT_EQ(dims_text(parse_input_dims("[[2,3],[],[[1,2],[3]],[ 4 ]]")), "[[2, 3], [], [], [4]]");
  EXPECT_EQ(dims_text(parse_input_dims("")), "[]");
  EXPECT_EQ(dims_text(parse_input_dims("[[1, 2], [3")), "[[1, 2]]");
}

TEST(OpInputs, concrete_values_are_lists_numbers_or_nothing) {
  EXPECT_EQ(parse_int_list("[1, 2]"), (Dims{1, 2}));
  EXPECT_EQ(parse_int_list("[True, False]"), (Dims{1, 0}));
  EXPECT_EQ(parse_int_list("7"), (Dims{7}));
  EXPECT_EQ(parse_int_list("[]"), (Dims{}));
  EXPECT_EQ(parse_int_list(""), std::nullopt);
  EXPECT_EQ(parse_int_list("same"), std::nullopt);
  EXPECT_EQ(parse_int_list("0.5"), std::nullopt);
}

}  // namespace
}  // namespace firelane::analyze

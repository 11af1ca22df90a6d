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

int64_t bytes_of(std::string_view op, std::string_view overload, KernelClass kernel_class, std::string_view dims,
                 std::string_view types) {
  const Model model =
      TraceBuilder().op(op, {.start_us = 0, .end_us = 1, .dims = dims, .types = types, .overload = overload}).build();
  return op_bytes(op, kernel_class, input_tensors(model, 0), 0);
}

// 64 x 64 floats are 16384 bytes.
TEST(OpTensors, an_out_argument_is_written_and_not_read) {
  const std::string_view add = R"(["float", "float", "Scalar", "float"])";
  const std::string_view dims = "[[64, 64], [64, 64], [], [64, 64]]";
  EXPECT_EQ(bytes_of("aten::add", "out", KernelClass::kPointwise, dims, add), 3 * 16384);
  EXPECT_EQ(bytes_of("aten::add", "", KernelClass::kPointwise, dims, add), 3 * 16384);  // torch.profiler: no overloads
  EXPECT_EQ(bytes_of("aten::add", "Tensor", KernelClass::kPointwise, "[[64, 64], [64, 64], []]",
                     R"(["float", "float", "Scalar"])"),
            3 * 16384);
  // The result of half the type, and that of a sum.
  EXPECT_EQ(bytes_of("aten::exp", "out", KernelClass::kPointwise, "[[64, 64], [64, 64]]", R"(["float", "c10::Half"])"),
            16384 + 8192);
  EXPECT_EQ(bytes_of("aten::sum", "IntList_out", KernelClass::kReduction, "[[64, 64], [], [], [], [64]]",
                     R"(["float", "ScalarList", "Scalar", "", "float"])"),
            16384 + 256);
}

TEST(OpTensors, an_out_argument_is_no_factor_of_a_product) {
  const std::string_view types = R"(["float", "float", "float"])";
  EXPECT_EQ(bytes_of("aten::mm", "out", KernelClass::kMatmul, "[[64, 8], [8, 16], [64, 16]]", types),
            4 * (64 * 8 + 8 * 16 + 64 * 16));
  // One that torch has yet to resize.
  EXPECT_EQ(bytes_of("aten::mm", "", KernelClass::kMatmul, "[[64, 8], [8, 16], [0]]", types),
            4 * (64 * 8 + 8 * 16 + 64 * 16));
}

TEST(OpTensors, an_op_that_only_writes_an_out_argument_has_bytes) {
  const std::string_view types = R"(["Scalar", "Scalar", "Scalar", "long int"])";
  EXPECT_EQ(bytes_of("aten::arange", "start_out", KernelClass::kOther, "[[], [], [], [512]]", types), 8 * 512);
  EXPECT_EQ(bytes_of("aten::arange", "", KernelClass::kPointwise, "[[], [], [], [512]]", types), 8 * 512);
  EXPECT_EQ(bytes_of("aten::full", "out", KernelClass::kPointwise, "[[], [], [64, 64]]",
                     R"(["ScalarList", "Scalar", "float"])"),
            16384);
  EXPECT_EQ(bytes_of("aten::arange", "start_out", KernelClass::kOther, "[[], [], [], [0]]", types), kNoNumber)
      << "one that torch has yet to resize";
}

// 64 rows of 64 floats, their weight and bias; the result, and a mean and a deviation for each row.
TEST(OpTensors, of_several_out_arguments_all_are_written_and_none_is_read) {
  EXPECT_EQ(bytes_of("aten::native_layer_norm", "out", KernelClass::kNormalization,
                     "[[64, 64], [], [64], [64], [], [64, 64], [64, 1], [64, 1]]",
                     R"(["float", "ScalarList", "float", "float", "Scalar", "float", "float", "float"])"),
            16384 + 256 + 256 + 16384 + 256 + 256);
  EXPECT_EQ(bytes_of("aten::max", "dim_max", KernelClass::kReduction, "[[64, 64], [], [], [64], [64]]",
                     R"(["float", "Scalar", "Scalar", "float", "long int"])"),
            16384 + 256 + 512);
  const Model model =
      TraceBuilder()
          .op("aten::native_layer_norm",
              {.start_us = 0,
               .end_us = 1,
               .dims = "[[64, 64], [], [64], [64], [], [64, 64], [64, 1], [64, 1]]",
               .types = R"(["float", "ScalarList", "float", "float", "Scalar", "float", "float", "float"])",
               .overload = "out"})
          .build();
  std::vector<bool> is_output;
  for (const OpTensor& tensor : input_tensors(model, 0)) is_output.push_back(tensor.is_output);
  EXPECT_EQ(is_output, (std::vector<bool>{false, false, false, true, true, true}));
}

TEST(OpTensors, a_third_tensor_of_an_op_without_out_is_read) {
  EXPECT_EQ(bytes_of("aten::addcmul", "", KernelClass::kPointwise, "[[64, 64], [64, 64], [64, 64], []]",
                     R"(["float", "float", "float", "Scalar"])"),
            4 * 16384);
  EXPECT_EQ(bytes_of("vendor::add", "", KernelClass::kPointwise, "[[64, 64], [64, 64], [64, 64]]",
                     R"(["float", "float", "float"])"),
            4 * 16384);
}

}  // namespace
}  // namespace firelane::analyze

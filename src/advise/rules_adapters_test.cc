// Adapters beside their layers, and what only looks like one.
#include <gtest/gtest.h>

#include "advise/tensor_program.h"

namespace firelane::advise {
namespace {

enum class What { kAdapter, kOtherInput, kAsWide, kMadeWeights, kTrained };

Judged adapted(What what) {
  TensorProgram program;
  const WrittenTensor x = program.weight({8, 256});
  const WrittenTensor other = program.weight({8, 256});
  const WrittenTensor weight = program.weight({256, 256});
  const int64_t rank = what == What::kAsWide ? 256 : 8;
  const WrittenTensor down = program.weight({256, rank});
  const WrittenTensor up = program.weight({rank, 256});
  for (int step = 0; step < 4; ++step) {
    const WrittenTensor y = program.op("aten::gelu", 50, {x}, {8, 256});
    const WrittenTensor z = program.op("aten::gelu", 50, {other}, {8, 256});
    const WrittenTensor layer = program.op("aten::mm", 100, {y, weight}, {8, 256});
    const double first = program.last_us();
    const WrittenTensor a = what == What::kMadeWeights ? program.op("aten::tanh", 10, {down}, down.dims) : down;
    const WrittenTensor thin = program.op("aten::mm", 40, {what == What::kOtherInput ? z : y, a}, {8, rank});
    const WrittenTensor wide = program.op("aten::mm", 40, {thin, up}, {8, 256});
    const WrittenTensor scaled = program.op("aten::mul", 20, {wide, {}}, {8, 256});
    const WrittenTensor sum = program.op("aten::add", 20, {layer, scaled, {}}, {8, 256});
    program.op("aten::relu", 20, {sum}, {8, 256});
    if (what == What::kTrained) program.backward("MmBackward0", first, "aten::mm", 100, {sum, weight}, {8, 256});
    program.finish_step();
  }
  return program.judged();
}

TEST(UnmergedAdapters, a_thin_product_beside_a_layer_is_told_with_its_rank) {
  const Judged found = adapted(What::kAdapter);
  const Finding* finding = find(found, "adapters-unmerged");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("adapters of rank 8 run beside 1 layer"), std::string::npos) << finding->title;
  EXPECT_NEAR(static_cast<double>(finding->gain.middle_ns()), 120e3, 40e3);
  EXPECT_EQ(&found.findings[0], finding);
}

TEST(UnmergedAdapters, what_cannot_be_a_part_of_the_layers_weights_is_none) {
  EXPECT_EQ(find(adapted(What::kOtherInput), "adapters-unmerged"), nullptr) << "another input";
  EXPECT_EQ(find(adapted(What::kAsWide), "adapters-unmerged"), nullptr) << "a second layer";
  EXPECT_EQ(find(adapted(What::kMadeWeights), "adapters-unmerged"), nullptr) << "weights that are made in each step";
  EXPECT_EQ(find(adapted(What::kTrained), "adapters-unmerged"), nullptr) << "it learns";
}

}  // namespace
}  // namespace firelane::advise

// Sizes and strides as no tensor has them, in programs that the rules on tensors look at.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "advise/tensor_program.h"

namespace firelane::advise {
namespace {

constexpr std::array<int64_t, 9> kSizes = {-1,
                                           0,
                                           1,
                                           64,
                                           64,
                                           int64_t{1} << 31,
                                           int64_t{1} << 62,
                                           std::numeric_limits<int64_t>::max(),
                                           std::numeric_limits<int64_t>::min()};
constexpr std::array<std::string_view, 22> kOps = {"aten::mm",          "aten::bmm",
                                                   "aten::addmm",       "aten::copy_",
                                                   "aten::mul",         "aten::sub",
                                                   "aten::pow",         "aten::sum",
                                                   "aten::index",       "aten::index_select",
                                                   "aten::im2col",      "aten::upsample_nearest2d",
                                                   "aten::convolution", "aten::scatter_",
                                                   "aten::zeros",       "aten::eq",
                                                   "aten::arange",      "aten::linalg_inv",
                                                   "aten::linalg_eigh", "aten::cosine_similarity",
                                                   "aten::cat",         "aten::native_batch_norm"};
constexpr std::array<std::string_view, 4> kNumbers = {
    R"(["", "2", "-1", "9223372036854775807"])", R"(["", "[-9223372036854775808]", "[1, 1]"])", R"(["", "", ""])",
    R"(["", "", "", "[1]", "[0]", "[1]", "False", "[0]", "1", "[True, True, False]"])"};

TEST(BrokenSizes, rules_that_follow_tensors_compute_with_any) {
  std::mt19937 random(1);  // NOLINT: the same each time
  const auto one_of = [&](const auto& all) { return all[random() % all.size()]; };
  for (int round = 0; round < 100; ++round) {
    const auto broken = [&](WrittenTensor tensor) {
      for (int64_t& size : tensor.dims) {
        if (random() % 3 == 0) size = one_of(kSizes);
      }
      tensor.strides.assign(tensor.dims.size(), 1);
      for (int64_t& stride : tensor.strides) stride = one_of(kSizes);
      return tensor;
    };
    TensorProgram program;
    std::vector<WrittenTensor> known = {program.weight({64, 64}), program.weight({64, 64, 64})};
    for (int step = 0; step < 3; ++step) {
      program.op("aten::gelu", 50, {known[0]}, {64, 64});
      for (int i = 0; i < 30; ++i) {
        const std::string_view name = one_of(kOps);
        std::vector<WrittenTensor> inputs;
        for (uint32_t k = random() % 4; k-- > 0;) inputs.push_back(broken(one_of(known)));
        if (name.ends_with('_')) {
          program.in_place(name, 100, inputs, one_of(kNumbers));
        } else {
          known.push_back(program.op(name, 100, inputs, {64, 64}, one_of(kNumbers)));
        }
        if (i % 7 == 6) program.backward("MmBackward0", program.last_us(), "aten::mm", 50, inputs, {64, 64});
      }
      program.finish_step();
    }
    const Judged judged = program.judged();
    for (const Finding& finding : judged.findings) {
      EXPECT_GE(finding.gain.low_ns, 0) << finding.title;
      EXPECT_LE(finding.gain.high_ns, judged.study.mean_step_ns()) << finding.title;
      EXPECT_LE(finding.share_of_step, 1) << finding.title;
    }
  }
}

}  // namespace
}  // namespace firelane::advise

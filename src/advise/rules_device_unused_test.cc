// A GPU that is there and not used, and programs that had better stay on the CPU.
#include <gtest/gtest.h>

#include <string_view>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

constexpr std::string_view kOnCpu = R"([[1, 8192, 0, -1, "float"], [2, 16384, 0, -1, "float"]])";
constexpr std::string_view kOnDevice = R"([[1, 8192, 1, 0, "float"], [2, 16384, 1, 0, "float"]])";

struct Left {
  bool torch_has_cuda = true;
  bool has_device = true;
  double op_us = 500;
  std::string_view tensors = kOnCpu;
};
class Classifier : public WrittenProgram<Classifier> {
 public:
  explicit Classifier(const Left& left) {
    if (left.torch_has_cuda) builder_.metadata("cuda_runtime_version", "13000");
    if (left.has_device) builder_.device({.id = 0, .name = "NVIDIA H200"});
    for (int step = 0; step < 4; ++step) {
      for (int layer = 0; layer < 8; ++layer) {
        builder_.op("aten::linear", {.start_us = at_,
                                     .end_us = at_ + left.op_us,
                                     .dims = "[[64, 256], [256, 256]]",
                                     .types = R"(["float", "float"])",
                                     .tensors = left.tensors});
        builder_.op("aten::addmm", {.start_us = at_ + 1, .end_us = at_ + left.op_us - 1});
        at_ += left.op_us + 4;
      }
      at_ += left.op_us < 100 ? 1000 : 0;  // a step is long enough, with other things
      end_step();
    }
  }
};

TEST(DeviceUnused, a_program_left_on_the_cpu_of_a_machine_with_a_gpu_is_told_first) {
  const Judged found = Classifier({}).judged();
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "device-unused");
  EXPECT_NE(found.findings[0].title.find("NVIDIA H200"), std::string::npos) << found.findings[0].title;
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 3.9e6, 0.3e6);
}

TEST(DeviceUnused, a_torch_without_cuda_and_a_machine_without_gpu_are_none) {
  EXPECT_EQ(find(Classifier({.torch_has_cuda = false}).judged(), "device-unused"), nullptr);
  EXPECT_EQ(find(Classifier({.has_device = false}).judged(), "device-unused"), nullptr);
}

TEST(DeviceUnused, small_operators_and_tensors_that_are_on_the_gpu_are_none) {
  EXPECT_EQ(find(Classifier({.op_us = 12}).judged(), "device-unused"), nullptr) << "a launch takes as long";
  EXPECT_EQ(find(Classifier({.tensors = kOnDevice}).judged(), "device-unused"), nullptr)
      << "its kernels were not recorded";
}

}  // namespace
}  // namespace firelane::advise

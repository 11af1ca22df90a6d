// Copies in a row: small ones to the device, and weights to the host; not those that are few, large or results.
#include <gtest/gtest.h>

#include <string>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

constexpr uint64_t kCopiedWeights = 0x7000'0000;  // tensors on the device, from before the recording
constexpr uint64_t kCopiedResults = 0x9000'0000;

class SendingProgram : public WrittenProgram<SendingProgram> {
 public:
  SendingProgram& kernel(std::string_view name, double us, std::string_view tensors = {}) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + 20, .tensors = tensors});
    builder_.call("cudaLaunchKernel", {.start_us = at_ + 5, .end_us = at_ + 9, .correlation = correlation_});
    busy_ = std::max(busy_, at_ + 12);
    builder_.kernel("kernel", {.start_us = busy_, .end_us = busy_ + us, .correlation = correlation_++});
    busy_ += us;
    at_ += 22;
    return *this;
  }
  // aten::to with a copy in it, for which the host waits.
  SendingProgram& copy(bool to_device, int64_t bytes, uint64_t storage) {
    const std::string tensors = "[[" + std::to_string(storage + 1) + ", " + std::to_string(storage) + ", " +
                                (to_device ? "0, -1" : "1, 0") + R"(, "float"]])";
    const double begins = std::max(busy_, at_ + 10);
    const double ends = begins + std::max(2.0, static_cast<double>(bytes) / 20e3);
    builder_.op("aten::to", {.start_us = at_, .end_us = ends + 10, .tensors = tensors});
    builder_.call("cudaMemcpyAsync", {.start_us = at_ + 5, .end_us = at_ + 9, .correlation = correlation_});
    builder_.call("cudaStreamSynchronize", {.start_us = at_ + 9.5, .end_us = ends + 3});
    builder_.copy(to_device ? "Memcpy HtoD (Pageable -> Device)" : "Memcpy DtoH (Device -> Pageable)",
                  {.start_us = begins, .end_us = ends, .correlation = correlation_++, .bytes = bytes});
    busy_ = ends;
    at_ = ends + 14;
    return *this;
  }
  SendingProgram& update(int tensors) {
    std::string list;
    for (int i = 0; i < tensors; ++i) {
      const std::string storage = std::to_string(kCopiedWeights + 0x10'0000 * static_cast<uint64_t>(i));
      list += (i == 0 ? "[" : ", [") + storage + ", " + storage + R"(, 1, 0, "float"])";
    }
    const double from = at_;
    at_ += 2;
    kernel("aten::_fused_adamw_", 30, "[[" + list + "]]");
    builder_.annotation("Optimizer.step#AdamW.step", {.start_us = from, .end_us = at_});
    return *this;
  }

 private:
  double busy_ = 0;
};

Judged sent(int copies, int64_t bytes, bool in_a_row = true) {
  SendingProgram program;
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 10; ++i) program.kernel("aten::addmm", 60);
    for (int i = 0; i < copies; ++i) {
      program.copy(true, bytes, 0x1000 * static_cast<uint64_t>(i + 1));
      if (!in_a_row) program.kernel("aten::add", 5);
    }
    program.end_step();
  }
  return program.judged();
}

TEST(SmallCopies, a_batch_that_goes_tensor_by_tensor_is_told_and_not_as_pageable) {
  const Judged found = sent(100, 64);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "small-copies");
  EXPECT_NE(found.findings[0].title.find("100 small copies to the device one by one (6.2 KiB in all, 64 B each)"),
            std::string::npos)
      << found.findings[0].title;
  EXPECT_GT(found.findings[0].gain.middle_ns(), 2'000'000) << "99 of 100 calls, of 36 us each";
  EXPECT_EQ(find(found, "pageable-copies"), nullptr) << "pinned memory changes little";
}

TEST(SmallCopies, few_or_large_ones_and_those_with_work_between_are_none) {
  EXPECT_EQ(find(sent(10, 64), "small-copies"), nullptr);
  const Judged large = sent(40, 4 << 20);
  EXPECT_EQ(find(large, "small-copies"), nullptr);
  EXPECT_NE(find(large, "pageable-copies"), nullptr);
  EXPECT_EQ(find(sent(40, 64, false), "small-copies"), nullptr);
}

Judged kept_on_host(uint64_t first, int steps_with = 4) {
  SendingProgram program;
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 10; ++i) program.kernel("aten::addmm", 60);
    program.update(16);
    for (int i = 0; i < 16 && step < steps_with; ++i)
      program.copy(false, 2 << 20, first + 0x10'0000 * static_cast<uint64_t>(i));
    program.end_step();
  }
  return program.judged();
}

TEST(WeightsToHost, parameters_that_are_copied_in_every_step_are_told_as_that_and_not_as_waits) {
  const Judged found = kept_on_host(kCopiedWeights);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "weights-to-host");
  EXPECT_NE(found.findings[0].title.find("16 tensors one by one, 32.0 MiB"), std::string::npos)
      << found.findings[0].title;
  EXPECT_GT(found.findings[0].gain.middle_ns(), 1'500'000) << "16 copies of 105 us, and the calls";
  EXPECT_EQ(find(found, "host-sync"), nullptr);
}

TEST(WeightsToHost, results_and_a_copy_now_and_then_are_none) {
  EXPECT_EQ(find(kept_on_host(kCopiedResults), "weights-to-host"), nullptr);
  EXPECT_EQ(find(kept_on_host(kCopiedWeights, 1), "weights-to-host"), nullptr);
}

}  // namespace
}  // namespace firelane::advise

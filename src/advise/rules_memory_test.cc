// Each rule on a trace with its fault, and on the same one without it.
#include <gtest/gtest.h>

#include "advise/rule.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kWaitNs = 7'000;  // what a wait costs in these traces

class MemoryProgram {
 public:
  explicit MemoryProgram(int64_t capacity_bytes = 1000 * kMiB) {
    trace.device({.id = 0, .name = "GPU", .total_memory_bytes = capacity_bytes});
  }
  MemoryProgram& change(double at_us, uint64_t address, int64_t bytes, int64_t reserved) {
    total_ += bytes;
    trace.memory({.at_us = at_us,
                  .bytes = bytes,
                  .device_type = 1,
                  .device = 0,
                  .address = address,
                  .total_allocated = total_,
                  .total_reserved = reserved});
    return *this;
  }
  std::vector<Finding> ask(std::string_view rule, int64_t device_busy_ns = 0) {
    const StudiedTrace studied(trace.build());
    const Context context{.trace = studied,
                          .window = {0, 1'000'000'000},
                          .step_ns = 100'000,
                          .device_busy_ns = device_busy_ns,
                          .has_device_work = true,
                          .gain_ns = [](const analyze::WhatIf& change) {
                            int64_t saved = kWaitNs * static_cast<int64_t>(change.waits.size());
                            for (const analyze::HostCut& cut : change.host) {
                              saved +=
                                  static_cast<int64_t>((1 - cut.keep) * static_cast<double>(cut.end_ns - cut.start_ns));
                            }
                            return saved;
                          }};
    return find_rule(rule)->find(context);
  }
  TraceBuilder trace;

 private:
  int64_t total_ = 0;
};

TEST(MemoryRules, near_the_limit) {
  EXPECT_EQ(MemoryProgram().change(1, 0x10, 950 * kMiB, 960 * kMiB).ask("memory-near-limit").size(), 1u);
  EXPECT_TRUE(MemoryProgram().change(1, 0x10, 500 * kMiB, 600 * kMiB).ask("memory-near-limit").empty());
}

TEST(MemoryRules, a_spike) {
  const auto spike = [](int64_t bytes, int64_t capacity_bytes = 1000 * kMiB) {
    MemoryProgram program(capacity_bytes);
    program.trace.op("aten::cross_entropy_loss", {.start_us = 10, .end_us = 20});
    program.change(1, 0x10, 100 * kMiB, 900 * kMiB)
        .change(12, 0x20, bytes, 900 * kMiB)
        .change(18, 0x20, -bytes, 900 * kMiB);
    return program.ask("memory-spike");
  };
  ASSERT_EQ(spike(100 * kMiB).size(), 1u);
  EXPECT_EQ(spike(100 * kMiB)[0].title, "aten::cross_entropy_loss needs 100 MiB for a moment: 50% of the peak");
  EXPECT_TRUE(spike(20 * kMiB).empty());
  EXPECT_TRUE(spike(100 * kMiB, 100'000 * kMiB).empty()) << "the device has room for a thousand of them";
}

TEST(MemoryRules, a_leak) {
  const auto steps = [](bool frees) {
    MemoryProgram program;
    for (int i = 0; i < 5; ++i) {
      const double at = i * 100;
      program.trace.step(i, {.start_us = at, .end_us = at + 90})
          .op("aten::add", {.start_us = at + 10, .end_us = at + 20});
      program.change(at + 15, static_cast<uint64_t>(i + 1), 2 * kMiB, 900 * kMiB);
      if (frees) program.change(at + 50, static_cast<uint64_t>(i + 1), -2 * kMiB, 900 * kMiB);
    }
    return program.ask("memory-leak");
  };
  ASSERT_EQ(steps(false).size(), 1u);
  EXPECT_EQ(steps(false)[0].title,
            "memory grows by 2.0 MiB with every step; GPU is full after 495 steps (49.5 ms); most by aten::add");
  EXPECT_EQ(steps(false)[0].precedence, Precedence::kFails) << "soon";
  EXPECT_EQ(steps(false)[0].confidence, Confidence::kHigh);
  EXPECT_TRUE(steps(true).empty());
}

TEST(MemoryRules, a_leak_of_half_a_mebibyte_is_told_where_it_is_a_part_of_all_memory) {
  const auto steps = [](int64_t kept_bytes, int64_t weights_bytes) {
    MemoryProgram program;
    program.change(1, 0x1000, weights_bytes, 900 * kMiB);
    for (int i = 0; i < 5; ++i) {
      const double at = 10 + i * 100;
      program.trace.step(i, {.start_us = at, .end_us = at + 90})
          .op("aten::add", {.start_us = at + 10, .end_us = at + 20});
      program.change(at + 15, static_cast<uint64_t>(i + 1), kept_bytes, 900 * kMiB);
    }
    return program.ask("memory-leak");
  };
  EXPECT_EQ(steps(kMiB / 2, 4 * kMiB).size(), 1u);
  EXPECT_TRUE(steps(kMiB / 2, 400 * kMiB).empty()) << "nobody will notice";
  EXPECT_TRUE(steps(kMiB / 32, kMiB / 8).empty());
}

TEST(MemoryRules, growth_that_grows_itself_fills_the_device_sooner) {
  MemoryProgram program;
  for (int i = 0; i < 5; ++i) {
    const double at = i * 100;
    program.trace.step(i, {.start_us = at, .end_us = at + 90})
        .op("aten::cat", {.start_us = at + 10, .end_us = at + 20});
    program.change(at + 15, static_cast<uint64_t>(i + 1), (i + 1) * 2 * kMiB, 900 * kMiB);
  }
  const std::vector<Finding> findings = program.ask("memory-leak");
  ASSERT_EQ(findings.size(), 1u);
  // 12, 14, 16, ... MiB into the 970 MiB that are left.
  EXPECT_EQ(findings[0].title,
            "memory grows faster and faster (quadratically): each step keeps 2.0 MiB more than the one before; GPU is "
            "full after 26 steps (2.6 ms); most by aten::cat");
}

TEST(MemoryRules, fragmentation_matters_only_when_much_is_reserved) {
  EXPECT_EQ(MemoryProgram().change(1, 0x10, 300 * kMiB, 800 * kMiB).ask("memory-fragmentation").size(), 1u);
  EXPECT_TRUE(MemoryProgram().change(1, 0x10, 100 * kMiB, 300 * kMiB).ask("memory-fragmentation").empty());
  EXPECT_TRUE(MemoryProgram().change(1, 0x10, 700 * kMiB, 800 * kMiB).ask("memory-fragmentation").empty());
}

TEST(MemoryRules, calls_into_the_driver) {
  MemoryProgram program;
  program.trace.call("cudaMalloc", {.start_us = 10, .end_us = 30});
  const auto findings = program.ask("allocator-thrash");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cost_ns, 20'000);
  EXPECT_EQ(findings[0].gain.low_ns, 16'000 + kWaitNs) << "nobody waits for the device any more";
  EXPECT_EQ(findings[0].gain.high_ns, 20'000 + kWaitNs);
  EXPECT_TRUE(MemoryProgram().ask("allocator-thrash").empty());
}

TEST(MemoryRules, room_for_a_larger_batch) {
  EXPECT_EQ(MemoryProgram().change(1, 0x10, 100 * kMiB, 200 * kMiB).ask("small-batch", 20'000).size(), 1u);
  EXPECT_TRUE(MemoryProgram().change(1, 0x10, 100 * kMiB, 200 * kMiB).ask("small-batch", 95'000).empty()) << "busy";
  EXPECT_TRUE(MemoryProgram().change(1, 0x10, 600 * kMiB, 700 * kMiB).ask("small-batch", 20'000).empty()) << "full";
}

}  // namespace
}  // namespace firelane::advise

// Arithmetic that takes many times as long as copying, and what only is large.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

constexpr std::string_view kTraces = "[[48, 4096], [48, 4096]]";

class Neurons : public WrittenProgram<Neurons> {
 public:
  void op(std::string_view name, double us, std::string_view dims = kTraces,
          std::string_view types = R"(["float", "float"])") {
    builder_.op(name, {.start_us = at_, .end_us = at_ + us, .dims = dims, .types = types});
    at_ += us + 4;
  }
  void threads(int64_t count) { threads_ = count; }
  Judged judged() {
    model_ = builder_.build();
    if (threads_ > 0) model_.info.environment.torch_threads = threads_;
    return diagnose(model_);
  }

 private:
  Model model_;
  int64_t threads_ = 0;
};

struct Times {
  double arithmetic_us = 1070;
  double copy_us = 60;
  std::string_view dims = kTraces;
  std::string_view types = R"(["float", "float"])";
};
Judged faded(const Times& times) {
  Neurons program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::clone", times.copy_us, "[[48, 4096]]");
    for (int round = 0; round < 4; ++round) {
      program.op("aten::mul_", times.arithmetic_us, times.dims, times.types);
      program.op("aten::add_", times.arithmetic_us, times.dims, times.types);
    }
    program.end_step();
  }
  return program.judged();
}

TEST(Denormals, additions_that_take_far_longer_than_copies_are_told_first) {
  const Judged found = faded({});
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "denormals");
  EXPECT_NE(found.findings[0].title.find("5.4 ns of core time per element"), std::string::npos)
      << found.findings[0].title;
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 8 * 1000e3, 800e3);
}

TEST(Denormals, normal_speed_and_a_machine_on_which_all_is_slow_are_none) {
  EXPECT_EQ(find(faded({.arithmetic_us = 100}), "denormals"), nullptr);
  EXPECT_EQ(find(faded({.copy_us = 800}), "denormals"), nullptr) << "copies are as slow";
}

// 12 million numbers on 64 threads of a server: 2.4 ms for an addition are 60 GB/s, and looked like 12.8 ns of a core
// for each number.
TEST(Denormals, large_tensors_that_many_cores_wait_for_memory_with_were_taken_for_denormals) {
  const auto added = [](int64_t threads, std::string_view dims, double us) {
    Neurons program;
    program.threads(threads);
    for (int step = 0; step < 4; ++step) {
      for (int round = 0; round < 4; ++round) program.op("aten::add", us, dims);
      program.end_step();
    }
    return program.judged();
  };
  constexpr std::string_view kLarge = "[[3072, 4096], [3072, 4096]]";
  EXPECT_EQ(find(added(64, kLarge, 2400), "denormals"), nullptr);
  EXPECT_NE(find(added(1, kLarge, 80'000), "denormals"), nullptr) << "one core, 6.4 ns";
  EXPECT_NE(find(added(4, kTraces, 320), "denormals"), nullptr) << "four, on what a cache holds";
}

TEST(Denormals, results_that_a_broadcast_makes_larger_and_whole_numbers_are_none) {
  EXPECT_EQ(find(faded({.dims = "[[4096, 1, 64], [1, 48, 64]]"}), "denormals"), nullptr);
  EXPECT_EQ(find(faded({.types = R"(["long int", "long int"])"}), "denormals"), nullptr);
}

}  // namespace
}  // namespace firelane::advise

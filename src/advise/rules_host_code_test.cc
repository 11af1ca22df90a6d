// Code between operators: told from the way to the next operator, and from what torch does in Python itself.
#include <gtest/gtest.h>

#include "advise/diagnose.h"
#include "advise/testing.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

// Steps of 30 operators of 30 us, 8 us apart, and one stretch of `code_us` without any, at the given place.
enum class Place { kForward, kOptimizer, kIntoBackward, kOnceInEight };
Judged with_code(Place place, double code_us) {
  TraceBuilder builder;
  double at = 0;
  for (int step = 0; step < 8; ++step) {
    const double from = at;
    const auto ops = [&](int count, std::string_view name) {
      for (int i = 0; i < count; ++i) {
        builder.op(name, {.start_us = at, .end_us = at + 30});
        at += 38;
      }
    };
    ops(10, "aten::mul");
    if (place == Place::kForward || (place == Place::kOnceInEight && step == 5)) at += code_us;
    ops(10, "aten::add");
    if (place == Place::kIntoBackward) at += code_us;
    ops(9, "autograd::engine::evaluate_function: MulBackward0");
    const double update = at;
    if (place == Place::kOptimizer) at += code_us;
    ops(1, "aten::_fused_adam_");
    builder.annotation("Optimizer.step#Adam.step", {.start_us = update, .end_us = at});
    at += 5;
    builder.step(step, {.start_us = from, .end_us = at});
  }
  const Model model = builder.build();
  return diagnose(model);
}

TEST(HostCode, short_stretches_count_in_short_steps_and_are_placed_by_their_neighbours) {
  const Judged judged = with_code(Place::kForward, 400);
  const Finding* finding = find(judged, "host-code");
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(finding->share_of_step, 408.0 / 1553, 0.03);
  EXPECT_NE(finding->title.find("after aten::mul and before aten::add"), std::string::npos) << finding->title;
  EXPECT_EQ(find(with_code(Place::kForward, 60), "host-code"), nullptr) << "the way to the next operator";
}

TEST(HostCode, what_torch_does_in_python_itself_is_none) {
  EXPECT_EQ(find(with_code(Place::kOptimizer, 400), "host-code"), nullptr);
  EXPECT_EQ(find(with_code(Place::kIntoBackward, 400), "host-code"), nullptr);
  EXPECT_EQ(find(with_code(Place::kOptimizer, 2000), "host-code"), nullptr);
  EXPECT_NE(find(with_code(Place::kIntoBackward, 2000), "host-code"), nullptr) << "too long for that";
}

TEST(HostCode, stretches_at_another_place_in_each_step_are_none) {
  TraceBuilder builder;
  double at = 0;
  for (int step = 0; step < 6; ++step) {
    const double from = at;
    for (int i = 0; i < 12; ++i) {
      builder.op("aten::op" + std::to_string(i), {.start_us = at, .end_us = at + 30});
      at += i == 2 * step ? 900 : 38;
    }
    builder.step(step, {.start_us = from, .end_us = at});
  }
  const Model model = builder.build();
  EXPECT_EQ(find(diagnose(model), "host-code"), nullptr) << "the thread had no core, most likely";
}

TEST(HostCode, one_step_of_many_is_a_slow_step) {
  EXPECT_EQ(find(with_code(Place::kOnceInEight, 8000), "host-code"), nullptr);
}

// Ascend launches in a thread of its own: the thread of the operators was said to compute on the CPU.
TEST(HostCompute, an_operator_whose_work_another_thread_launches_does_not_compute_on_the_cpu) {
  for (const bool has_work : {true, false}) {
    TraceBuilder builder;
    for (int64_t i = 0; i < 4; ++i) {
      const double at = 1000.0 * static_cast<double>(i);
      builder.step(i, {.start_us = at, .end_us = at + 1000});
      builder.op("aten::mul", {.start_us = at + 10, .end_us = at + 700, .external_id = i + 1});
      builder.call("launch", {.start_us = at + 300, .end_us = at + 310, .thread = 2, .correlation = i + 1});
      builder.kernel("mul", {.start_us = at + 320,
                             .end_us = at + 400,
                             .correlation = i + 1,
                             .external_id = has_work ? i + 1 : kNoNumber});
    }
    EXPECT_EQ(find(diagnose(builder.build()), "host-compute") == nullptr, has_work);
  }
}

// Four steps on a CPU: a layer, and ten lists of numbers, or tensors, that an operator takes as an index.
class Indexing : public WrittenProgram<Indexing> {
 public:
  Indexing& step(bool lists) {
    op("aten::linear", 1000);
    for (int i = 0; i < 10; ++i) {
      if (lists) {
        at_ += 90;  // the list is read
        op("aten::empty", 3);
        at_ += 60;  // and written
        op("aten::to", 4);
        op("aten::lift_fresh", 1);
      }
      op("aten::index", 40);
    }
    return end_step();
  }

 private:
  void op(std::string_view name, double us) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + us});
    at_ += us + 1;
  }
};

Judged indexed(bool lists) {
  Indexing program;
  for (int i = 0; i < 4; ++i) program.step(lists);
  return program.judged();
}

TEST(HostCode, lists_that_become_tensors_count_though_each_is_short) {
  const Judged found = indexed(true);
  const Finding* finding = find(found, "host-code");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("converts Python lists to tensors"), std::string::npos) << finding->title;
  EXPECT_GT(finding->gain.middle_ns(), 10 * 120'000);
  EXPECT_EQ(find(indexed(false), "host-code"), nullptr);
}

// Steps with a full collection in each, and `young` ones for each of them.
Judged collected(int young, bool in_all_steps = true) {
  TraceBuilder builder;
  double at = 0;
  for (int step = 0; step < 6; ++step) {
    const double from = at;
    builder.op("aten::linear", {.start_us = at, .end_us = at + 200});
    at += 210;
    for (int i = 0; i < young; ++i) {
      builder.python("gc: generation 0", {.start_us = at, .end_us = at + 3});
      at += 4;
    }
    builder.op("aten::_fused_adam_", {.start_us = at, .end_us = at + 50});
    at += 60;
    if (in_all_steps || step % 2 == 0) {
      builder.python("gc: generation 2", {.start_us = at, .end_us = at + 900});
      at += 910;
    }
    builder.step(step, {.start_us = from, .end_us = at});
  }
  const Model model = builder.build();
  return diagnose(model);
}

TEST(GcPauses, a_full_collection_in_every_step_is_a_call_of_the_program) {
  const Judged found = collected(0);
  const Finding* finding = find(found, "gc-pauses");
  ASSERT_NE(finding, nullptr);
  EXPECT_TRUE(finding->title.starts_with("gc.collect() in every step")) << finding->title;
  EXPECT_TRUE(finding->title.ends_with("; called after aten::_fused_adam_")) << finding->title;
  EXPECT_NEAR(static_cast<double>(finding->gain.middle_ns()), 900e3, 30e3);
}

TEST(GcPauses, collections_that_python_begins_are_no_calls) {
  for (const Judged& judged : {collected(20), collected(0, false)}) {
    const Finding* finding = find(judged, "gc-pauses");
    ASSERT_NE(finding, nullptr);
    EXPECT_TRUE(finding->title.starts_with("Python's garbage collector stops the program")) << finding->title;
  }
}

}  // namespace
}  // namespace firelane::advise

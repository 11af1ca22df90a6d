// What reasons say of a step in which the host hides less of the device's work than before, by hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "compare/difference/difference.h"

namespace firelane::compare {
namespace {

constexpr int64_t kMs = 1'000'000;

// A step of 20 ms: pointwise kernels are on its chain for 5 ms of the 10 ms that they take, the host for the rest.
struct Sides {
  Run before, after;
  std::vector<WorkChange> work;

  Sides() {
    before.has_device_work = after.has_device_work = true;
    before.work = after.work = {{.part = Part::kPointwise, .kernel = "relu", .total_ns = 10.0 * kMs}};
    set(before, 5, 15);
    set(after, 5, 15);
  }
  static void set(Run& run, int64_t pointwise_ms, int64_t operators_ms) {
    run.parts[static_cast<size_t>(Part::kPointwise)] = pointwise_ms * kMs;
    run.parts[static_cast<size_t>(Part::kOperators)] = operators_ms * kMs;
    run.step_ns = (pointwise_ms + operators_ms) * kMs;
  }
  void add_work(const char* op, Change change, double ns_before, double ns_after, double path_before,
                double path_after) {
    work.push_back({.part = Part::kPointwise,
                    .change = change,
                    .op = op,
                    .calls_before = ns_before > 0 ? 4.0 : 0.0,
                    .calls_after = ns_after > 0 ? 4.0 : 0.0,
                    .ns_before = ns_before * kMs,
                    .ns_after = ns_after * kMs,
                    .path_before = path_before * kMs,
                    .path_after = path_after * kMs});
  }
  std::vector<Reason> reasons() const {
    Difference d;
    d.step.before = static_cast<double>(before.step_ns);
    d.step.after = static_cast<double>(after.step_ns);
    d.step.ratio = d.step.after / d.step.before;
    d.work = work;
    for (const Part part : {Part::kPointwise, Part::kOperators}) {
      const auto at = static_cast<size_t>(part);
      d.parts.push_back({part, before.parts[at], after.parts[at]});
    }
    return reasons_for(d, before, after);
  }
};

int64_t sum_of(const std::vector<Reason>& reasons) {
  return std::accumulate(reasons.begin(), reasons.end(), int64_t{0},
                         [](int64_t sum, const Reason& reason) { return sum + reason.change_ns; });
}

const Reason* find(const std::vector<Reason>& reasons, std::string_view text) {
  for (const Reason& reason : reasons) {
    if (reason.text.find(text) != std::string::npos) return &reason;
  }
  return nullptr;
}

// New work takes 3 ms of the device, 1 ms of which the step waits for; the rest of the part's 4 ms the host hid before.
TEST(Reasons, time_of_the_device_that_the_host_hides_is_no_time_of_the_step) {
  Sides sides;
  Sides::set(sides.after, 9, 14);
  sides.add_work("aten::add", Change::kNew, 0, 3, 0, 1);
  const std::vector<Reason> reasons = sides.reasons();
  const Reason* add = find(reasons, "aten::add is new");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(add->change_ns, 1 * kMs);
  EXPECT_EQ(sum_of(reasons), 3 * kMs);
}

// Two pieces of work run other kernels: 3 ms more each on the device, 3 ms more of the step. A third takes 2 ms less of
// it, though its kernels are the same. The part grew by 4 ms.
TEST(Reasons, other_work_does_not_explain_more_than_its_part_changed) {
  Sides sides;
  Sides::set(sides.after, 9, 15);
  sides.add_work("aten::add", Change::kAlgorithm, 1, 4, 0, 3);
  sides.add_work("aten::mul", Change::kAlgorithm, 1, 4, 0, 3);
  sides.add_work("aten::relu", Change::kNone, 8, 8, 2, 0);
  const std::vector<Reason> reasons = sides.reasons();
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_NE(reasons[0].text.find("aten::add runs"), std::string::npos) << reasons[0].text;
  EXPECT_EQ(reasons[0].change_ns, 4 * kMs);
}

// What went took 3 ms, more than each of the two that came, which take 4 ms together.
TEST(Reasons, work_that_is_gone_is_not_named_for_a_slower_step) {
  Sides sides;
  Sides::set(sides.after, 10, 15);
  sides.add_work("aten::tanh", Change::kGone, 3, 0, 3, 0);
  sides.add_work("aten::add", Change::kNew, 0, 2.5, 0, 2.5);
  sides.add_work("aten::mul", Change::kNew, 0, 1.5, 0, 1.5);
  const std::vector<Reason> reasons = sides.reasons();
  EXPECT_EQ(find(reasons, "is gone"), nullptr);
  const Reason* add = find(reasons, "aten::add is new");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(add->change_ns, 1 * kMs);
  EXPECT_EQ(sum_of(reasons), 5 * kMs);
}

// The device's time fell while the step's chain has more of it: the host no longer hides it, and the work is no cause.
TEST(Reasons, work_that_takes_less_time_does_not_explain_a_part_that_grew) {
  Sides sides;
  Sides::set(sides.after, 9, 15);
  sides.add_work("aten::add", Change::kAlgorithm, 6, 4, 0, 4);
  const std::vector<Reason> reasons = sides.reasons();
  EXPECT_EQ(find(reasons, "aten::add"), nullptr);
  EXPECT_EQ(sum_of(reasons), 4 * kMs);
}

}  // namespace
}  // namespace firelane::compare

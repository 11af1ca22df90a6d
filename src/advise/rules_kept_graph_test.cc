// Backward passes through the graphs of earlier steps: told where they get longer, and not where the graph is cut.
#include <gtest/gtest.h>

#include "advise/testing.h"

namespace firelane::advise {
namespace {

// Steps on a CPU: one operator of the forward pass, and nodes of `passes` steps, its own among them.
class RecurrentTraining : public WrittenProgram<RecurrentTraining> {
 public:
  RecurrentTraining& step(int64_t passes) {
    const int64_t number = 1000 + 10 * steps_++;
    builder_.op("aten::gru", {.start_us = at_, .end_us = at_ + 100, .sequence_number = number});
    builder_.op("aten::mse_loss", {.start_us = at_ + 102, .end_us = at_ + 150, .sequence_number = number + 1});
    const double forward = at_;
    at_ += 160;
    if (passes > 0) node("MseLossBackward0", number + 1, forward + 102);
    for (int64_t i = 0; i < passes; ++i) node("CudnnRnnBackward0", number - 10 * i, i == 0 ? forward : -1);
    return end_step();
  }

 private:
  // Beginning where its forward op does: an arrow between them; below 0: that ran before the recording.
  void node(const char* name, int64_t number, double forward) {
    const std::string inner = name;
    builder_.op("autograd::engine::evaluate_function: " + inner,
                {.start_us = at_, .end_us = at_ + 200, .sequence_number = number, .forward_thread = 1});
    builder_.op(inner, {.start_us = at_ + 2, .end_us = at_ + 198, .sequence_number = number, .forward_thread = 1});
    if (forward >= 0)
      builder_.flow("fwdbwd", ++flows_, {.start_us = forward, .end_us = forward},
                    {.start_us = at_ + 2, .end_us = at_ + 2});
    at_ += 202;
  }

  int64_t steps_ = 0;
  int64_t flows_ = 0;
};

template <typename Passes>
Judged trained_on_pieces(const Passes& passes) {
  RecurrentTraining program;
  for (int64_t step = 0; step < 8; ++step) program.step(passes(step));
  return program.judged();
}

TEST(GrowingBackward, a_state_that_keeps_its_graph_is_told_first_with_all_that_is_gone_through_again) {
  const Judged found = trained_on_pieces([](int64_t step) { return 4 + step; });
  ASSERT_FALSE(found.findings.empty());
  const Finding& first = found.findings[0];
  EXPECT_EQ(first.id, "growing-backward");
  EXPECT_NE(first.title.find("of up to 10 earlier steps, and gets 1 node longer with each step"), std::string::npos)
      << first.title;
  EXPECT_NE(first.try_code.find("detach()"), std::string::npos);
  // 3 to 10 nodes of 202 us: on average 6.5.
  EXPECT_NEAR(static_cast<double>(first.gain.middle_ns()), 6.5 * 202e3, 0.15 * 6.5 * 202e3);
}

TEST(GrowingBackward, a_graph_that_is_cut_now_and_then_still_grows_between) {
  EXPECT_NE(find(trained_on_pieces([](int64_t step) { return 1 + (step + 2) % 5; }), "growing-backward"), nullptr);
}

// Losses of six steps are added up, or an episode is over: the next pass goes back to where the last one was.
TEST(GrowingBackward, one_pass_for_several_steps_was_said_to_grow) {
  RecurrentTraining program;
  for (int64_t step = 0; step < 24; ++step) program.step(step % 6 == 5 ? 6 : 0);
  EXPECT_EQ(find(program.judged(), "growing-backward"), nullptr);
}

TEST(GrowingBackward, passes_of_one_length_are_meant_to_be) {
  EXPECT_EQ(find(trained_on_pieces([](int64_t) { return 1; }), "growing-backward"), nullptr) << "each step its own";
  EXPECT_EQ(find(trained_on_pieces([](int64_t) { return 2; }), "growing-backward"), nullptr)
      << "a loss of the step before";
  EXPECT_EQ(find(trained_on_pieces([](int64_t) { return 6; }), "growing-backward"), nullptr) << "truncated after six";
}

}  // namespace
}  // namespace firelane::advise

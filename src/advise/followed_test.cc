// Where a recording follows tensors: layers, recurrences and loops over pieces are told apart, and gradients that
// nobody reads are known by themselves.
#include <gtest/gtest.h>

#include <string>

#include "advise/diagnose.h"
#include "advise/testing.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

// Operators without a device, each of which may take tensors and makes one.
class FollowedProgram : public WrittenProgram<FollowedProgram> {
 public:
  // A view: no memory of its own.
  FollowedProgram& select(uint64_t of) {
    const std::string tensors = "[[" + std::to_string(of + 1) + ", " + std::to_string(of) + R"(, 0, -1, "float"]])";
    builder_.op("aten::select", {.start_us = at_, .end_us = at_ + 4, .dims = "[[12, 8, 8]]", .tensors = tensors});
    at_ += 8;
    return *this;
  }
  // Memory from before the recording, if it was never made.
  uint64_t op(std::string_view name, std::initializer_list<uint64_t> inputs, std::string_view dims = "[[8, 8]]") {
    std::string tensors;
    for (const uint64_t storage : inputs) {
      tensors += (tensors.empty() ? "[" : ", ") + std::string("[") + std::to_string(storage + 1) + ", " +
                 std::to_string(storage) + ", 0, -1, \"float\"]";
    }
    builder_.op(name,
                {.start_us = at_, .end_us = at_ + 20, .dims = dims, .types = R"(["float"])", .tensors = tensors + "]"});
    const uint64_t made = next_ += 0x1000;
    builder_.memory({.at_us = at_ + 5, .bytes = 4096, .address = made});
    at_ += 24;
    return made;
  }
  // An operator of the forward pass and, later, its node: they have the same number.
  FollowedProgram& forward(int64_t number) {
    builder_.op("aten::linear", {.start_us = at_, .end_us = at_ + 200, .sequence_number = number});
    at_ += 204;
    return *this;
  }
  FollowedProgram& node(int64_t number) {
    builder_.op("autograd::engine::evaluate_function: AddmmBackward0",
                {.start_us = at_, .end_us = at_ + 100, .sequence_number = number});
    at_ += 104;
    return *this;
  }
  FollowedProgram& number() {
    builder_.op("aten::item", {.start_us = at_, .end_us = at_ + 10});
    at_ += 14;
    return *this;
  }
  // As long as the recorded steps: recording costs nothing.
  FollowedProgram& timed() {
    builder_.timed_step(steps_, {.start_us = from_us_ - 1e6, .end_us = at_ - 1e6});
    from_us_ = at_;
    ++steps_;
    return *this;
  }
  FollowedProgram& free(uint64_t storage) {
    builder_.memory({.at_us = at_, .bytes = -4096, .address = storage});
    at_ += 1;
    return *this;
  }
  // A node of a backward pass that hands a gradient to a parameter, which keeps it as it is, keeps a copy, or adds it
  // to the one that it has.
  uint64_t accumulate(std::string_view dims, std::string_view by = "aten::detach", uint64_t to = 0) {
    const uint64_t gradient = next_ += 0x1000;
    const double from = at_;
    const auto tensors = [](uint64_t storage) {
      return "[[" + std::to_string(storage + 1) + ", " + std::to_string(storage) + R"(, 0, -1, "float"]])";
    };
    builder_.op("aten::mm", {.start_us = at_, .end_us = at_ + 300, .dims = dims});
    builder_.memory({.at_us = at_ + 5, .bytes = 4096, .address = gradient});
    at_ += 310;
    builder_.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
                {.start_us = at_, .end_us = at_ + 12});
    builder_.op("torch::autograd::AccumulateGrad",
                {.start_us = at_ + 1, .end_us = at_ + 10, .dims = dims, .tensors = tensors(gradient)});
    builder_.op(by,
                {.start_us = at_ + 2, .end_us = at_ + 8, .dims = dims, .tensors = tensors(to == 0 ? gradient : to)});
    at_ += 15;
    builder_.op("autograd::engine::evaluate_function: MmBackward0", {.start_us = from - 1, .end_us = from + 305});
    if (by != "aten::detach") free(gradient);
    return gradient;
  }
  FollowedProgram& update(uint64_t gradient, std::string_view dims) {
    const double from = at_;
    op("aten::add_", {gradient}, dims);
    builder_.annotation("Optimizer.step#SGD.step", {.start_us = from - 1, .end_us = at_});
    return *this;
  }

 private:
  uint64_t next_ = 0x10'0000;
  double from_us_ = 0;
  int64_t steps_ = 0;
};

enum class Rounds { kLayers, kRecurrence, kPieces, kFilters, kConvolutions };
Judged rounds_of(Rounds rounds) {
  FollowedProgram program;
  for (int step = 0; step < 4; ++step) {
    uint64_t state = program.op("aten::randn", {});
    const uint64_t pieces = state;
    for (uint64_t i = 0; i < 12; ++i) {
      if (rounds == Rounds::kLayers) {
        state = program.op("aten::gelu", {program.op("aten::linear", {state, 0x2000 + i * 0x100})});
        program.number();
        continue;
      }
      if (rounds == Rounds::kFilters || rounds == Rounds::kConvolutions) {
        const bool one_weight = rounds == Rounds::kFilters;
        if (one_weight) program.select(0x2000);
        program.op("aten::conv1d", {pieces, one_weight ? 0x2000 : 0x2000 + i * 0x100});
        continue;
      }
      program.select(pieces);
      const uint64_t product = program.op("aten::linear", {rounds == Rounds::kPieces ? pieces : state, 0x2000});
      state = program.op("aten::mul", {product, pieces});
    }
    program.op("aten::mean", {state});
    program.timed().end_step();
  }
  return program.judged();
}

// A sort in each step: of what was there before, of that written over in between, or of what each step makes.
enum class Sorted { kSame, kWritten, kNew };
Judged sorted(Sorted what) {
  FollowedProgram program;
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 3; ++i) program.op("aten::mul", {0x8000});
    for (uint64_t i = 0; i < 30; ++i) {
      const uint64_t keys = what == Sorted::kNew ? program.op("aten::randn", {}) : 0x2000 + i * 0x100;
      program.op("aten::sort", {keys}, "[[30000]]");
    }
    if (what == Sorted::kWritten) program.op("aten::add_", {0x2000});
    program.timed().end_step();
  }
  return program.judged();
}

TEST(Followed, a_sort_of_what_did_not_change_is_needless_and_one_of_new_data_promises_nothing) {
  const Judged same = sorted(Sorted::kSame);
  ASSERT_FALSE(same.findings.empty());
  EXPECT_EQ(same.findings[0].id, "dominant-operator");
  EXPECT_NE(same.findings[0].title.find("did not change between steps"), std::string::npos) << same.findings[0].title;
  EXPECT_GT(same.findings[0].gain.low_ns, 0);
  for (const Sorted other : {Sorted::kWritten, Sorted::kNew}) {
    const Judged judged = sorted(other);
    const Finding* finding = find(judged, "dominant-operator");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->gain.high_ns, 0);
  }
}

// A penalty on each of many weights, added up; the same with the weights copied one by one; and layers of one operator.
enum class Listed { kPenalties, kCopies, kLayers };
Judged listed(Listed what) {
  FollowedProgram program;
  for (int step = 0; step < 4; ++step) {
    uint64_t state = program.op("aten::randn", {});
    program.op("aten::gelu", {state});
    for (uint64_t i = 0; i < 24; ++i) {
      const uint64_t weight = 0x2000 + i * 0x100;
      if (what == Listed::kCopies) {
        program.op("aten::clone", {program.op("aten::to", {weight})});
      } else if (what == Listed::kLayers) {
        state = program.op("aten::tanh", {program.op("aten::mul", {state, weight})});
      } else {
        const uint64_t norm = program.op("aten::linalg_vector_norm", {weight});
        state = program.op("aten::add", {state, program.op("aten::mul", {program.op("aten::pow", {norm})})});
      }
    }
    program.op("aten::mean", {state});
    program.timed().end_step();
  }
  return program.judged();
}

TEST(Followed, a_loop_over_parameters_is_told_and_layers_and_copies_of_them_are_not) {
  const Judged judged = listed(Listed::kPenalties);
  const Finding* loop = find(judged, "repeated-operators");
  ASSERT_NE(loop, nullptr);
  EXPECT_NE(loop->title.find("24 times in a row, each time for other tensors of a list"), std::string::npos)
      << loop->title;
  EXPECT_NE(loop->try_code.find("_foreach_"), std::string::npos) << loop->try_code;
  EXPECT_EQ(find(listed(Listed::kLayers), "repeated-operators"), nullptr);
  EXPECT_EQ(find(listed(Listed::kCopies), "repeated-operators"), nullptr);
}

TEST(Followed, layers_that_each_read_a_number_are_no_loop) {
  EXPECT_EQ(find(rounds_of(Rounds::kLayers), "repeated-operators"), nullptr);
}

TEST(Followed, a_recurrence_is_told_as_one_and_rounds_that_need_nothing_of_each_other_are_to_be_batched) {
  const Judged chained = rounds_of(Rounds::kRecurrence);
  const Finding* recurrence = find(chained, "repeated-operators");
  ASSERT_NE(recurrence, nullptr);
  EXPECT_NE(recurrence->title.find("each from the result of the one before"), std::string::npos) << recurrence->title;
  EXPECT_EQ(recurrence->confidence, Confidence::kLow);
  const Judged apart = rounds_of(Rounds::kPieces);
  const Finding* pieces = find(apart, "repeated-operators");
  ASSERT_NE(pieces, nullptr);
  EXPECT_EQ(pieces->title.find("each from the result"), std::string::npos) << pieces->title;
  EXPECT_NE(pieces->try_code.find("torch.bmm"), std::string::npos) << pieces->try_code;
}

TEST(Followed, a_convolution_with_one_filter_after_another_is_a_loop_and_layers_beside_each_other_are_none) {
  const Judged judged = rounds_of(Rounds::kFilters);
  const Finding* filters = find(judged, "repeated-operators");
  ASSERT_NE(filters, nullptr);
  EXPECT_NE(filters->try_code.find("F.conv1d(x, filters)"), std::string::npos) << filters->try_code;
  EXPECT_EQ(find(rounds_of(Rounds::kConvolutions), "repeated-operators"), nullptr) << "each with weights of its own";
}

// Two losses, of a judge and of what it judges; the first goes back through both on request. Both may have a norm of
// the same shape.
Judged two_losses(bool through_both, bool with_norms = false) {
  FollowedProgram program;
  constexpr std::string_view kJudge = "[[64, 32]]";
  constexpr std::string_view kMaker = "[[32, 16]]";
  constexpr std::string_view kNorm = "[[32]]";
  for (int step = 0; step < 4; ++step) {
    program.op("aten::linear", {0x2000});
    const uint64_t judge = program.accumulate(kJudge);
    const uint64_t wasted = through_both ? program.accumulate(kMaker) : 0;
    const uint64_t norm = with_norms ? program.accumulate(kNorm) : 0;
    const uint64_t wasted_norm = with_norms ? program.accumulate(kNorm) : 0;
    program.update(judge, kJudge);
    if (with_norms) program.update(norm, kNorm).free(norm).free(wasted_norm);
    if (wasted != 0) program.free(wasted);
    program.op("aten::linear", {0x2000});
    const uint64_t maker = program.accumulate(kMaker);
    program.update(maker, kMaker).free(maker).free(judge);
    program.end_step();
  }
  return program.judged();
}

TEST(Followed,
     gradients_that_are_given_back_before_an_optimizer_reads_them_are_found_though_others_of_their_shape_are_used) {
  const Judged judged = two_losses(true);
  const Finding* finding = find(judged, "unused-gradients");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("thrown away before an optimizer reads them"), std::string::npos) << finding->title;
  EXPECT_NE(finding->try_code.find("detach()"), std::string::npos);
  EXPECT_EQ(find(two_losses(false), "unused-gradients"), nullptr);
}

// A closure that an optimizer calls, and that is called once more for the log.
Judged logged(bool again) {
  FollowedProgram program;
  constexpr std::string_view kShape = "[[64, 32]]";
  for (int step = 0; step < 4; ++step) {
    const uint64_t gradient = program.forward(2 * step).node(2 * step).accumulate(kShape);
    program.update(gradient, kShape).free(gradient);
    if (again) program.free(program.forward(2 * step + 1).node(2 * step + 1).accumulate(kShape));
    program.end_step();
  }
  return program.judged();
}

TEST(Followed, a_pass_none_of_whose_gradients_is_used_takes_its_forward_pass_with_it) {
  const Judged again = logged(true);
  const Finding* finding = find(again, "unused-gradients");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("with the forward pass that only they need"), std::string::npos) << finding->title;
  EXPECT_GT(finding->gain.middle_ns(), 500'000) << "200 us forward, 100 us and 310 us back";
  EXPECT_EQ(find(logged(false), "unused-gradients"), nullptr);
}

TEST(Followed, gradients_of_a_judge_are_thrown_away_though_what_it_judges_has_norms_of_the_same_shape) {
  const Judged judged = two_losses(true, true);
  const Finding* finding = find(judged, "unused-gradients");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("thrown away before an optimizer reads them"), std::string::npos) << finding->title;
}

// A trained parameter, and another one whose gradient goes where the name says; the program may read it.
Judged beside_a_trained_one(std::string_view by, uint64_t to, bool is_read) {
  FollowedProgram program;
  constexpr std::string_view kStudent = "[[64, 32]]";
  constexpr std::string_view kTeacher = "[[48, 16]]";
  for (int step = 0; step < 4; ++step) {
    program.op("aten::linear", {0x2000});
    const uint64_t student = program.accumulate(kStudent);
    const uint64_t teacher = program.accumulate(kTeacher, by, to);
    program.update(student, kStudent).free(student);
    if (is_read) program.op("aten::clone", {teacher}, kTeacher);
    if (by == "aten::detach") program.free(teacher);
    program.end_step();
  }
  return program.judged();
}

TEST(Followed, gradients_that_grow_and_are_never_read_are_unused_and_what_is_copied_may_be_used) {
  constexpr uint64_t kFromBefore = 0x9000;
  const Judged grows = beside_a_trained_one("aten::add_", kFromBefore, false);
  const Finding* finding = find(grows, "unused-gradients");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("that no optimizer uses"), std::string::npos) << finding->title;
  EXPECT_NE(find(beside_a_trained_one("aten::detach", 0, false), "unused-gradients"), nullptr);
  EXPECT_EQ(find(beside_a_trained_one("aten::detach", 0, true), "unused-gradients"), nullptr) << "the program reads it";
  EXPECT_EQ(find(beside_a_trained_one("aten::clone", 0, false), "unused-gradients"), nullptr) << "a copy is kept";
}

}  // namespace
}  // namespace firelane::advise

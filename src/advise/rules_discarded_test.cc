// Results of which little is read, and those that are needed.
#include <gtest/gtest.h>

#include "advise/tensor_program.h"

namespace firelane::advise {
namespace {

constexpr int kScoredSteps = 4;

enum class Uses { kLast, kMasked, kCastAndMasked, kAll, kNone, kKept, kRowByRow };

Judged scored(Uses uses) {
  TensorProgram program;
  const WrittenTensor hidden = program.weight({64, 32});
  const WrittenTensor weights = program.weight({32, 1000});
  const WrittenTensor ids = program.weight({8});
  for (int step = 0; step < kScoredSteps; ++step) {
    program.op("aten::gelu", 200, {hidden}, {64, 32});
    const WrittenTensor scores = program.op("aten::mm", 400, {hidden, weights}, {64, 1000});
    const double product = program.last_us();
    WrittenTensor read = scores;
    if (uses == Uses::kCastAndMasked) read = program.copy(100, scores);
    switch (uses) {
      case Uses::kLast: program.op("aten::argmax", 20, {scores.seen_as({1000})}, {1}); break;
      case Uses::kMasked:
      case Uses::kCastAndMasked: {
        const WrittenTensor some = program.op("aten::index_select", 20, {read, {}, ids}, {8, 1000}, R"(["", "0", ""])");
        program.op("aten::exp", 20, {some}, {8, 1000});
        program.backward("MmBackward0", product, "aten::mm", 800, {read, weights}, {64, 32});
        break;
      }
      case Uses::kAll:
      case Uses::kKept: program.op("aten::argmax", 20, {scores}, {64}); break;
      case Uses::kRowByRow:
        for (int64_t row = 0; row < 8; ++row) program.in_place("aten::mul_", 20, {scores.seen_as({8, 1000}), ids});
        break;
      case Uses::kNone: break;
    }
    if (uses == Uses::kKept) {
      program.end_step();
    } else {
      program.finish_step();
    }
  }
  return program.judged();
}

const Finding* discarded(const Judged& found) { return find(found, "discarded-results"); }

TEST(DiscardedResults, scores_of_which_one_row_is_read_are_told_first) {
  const Judged found = scored(Uses::kLast);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "discarded-results");
  EXPECT_NE(found.findings[0].title.find("of which 1.6% is read"), std::string::npos) << found.findings[0].title;
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 380e3, 40e3);
}

TEST(DiscardedResults, scores_at_masked_places_are_found_with_their_backward_pass) {
  const Judged found = scored(Uses::kMasked);
  ASSERT_NE(discarded(found), nullptr);
  EXPECT_NE(discarded(found)->title.find("of which 12% is read"), std::string::npos) << discarded(found)->title;
  EXPECT_NEAR(static_cast<double>(discarded(found)->gain.middle_ns()), 1200e3 * 7 / 8, 100e3);
}

TEST(DiscardedResults, a_cast_before_the_part_is_taken_goes_with_it) {
  const Judged found = scored(Uses::kCastAndMasked);
  ASSERT_NE(discarded(found), nullptr);
  EXPECT_NEAR(static_cast<double>(discarded(found)->gain.middle_ns()), 1300e3 * 7 / 8, 100e3);
}

TEST(DiscardedResults, what_is_read_or_kept_is_needed) {
  EXPECT_EQ(discarded(scored(Uses::kAll)), nullptr);
  EXPECT_EQ(discarded(scored(Uses::kNone)), nullptr) << "who drops a model's output measures it";
  EXPECT_EQ(discarded(scored(Uses::kKept)), nullptr) << "somebody may read it later";
}

TEST(DiscardedResults, scores_that_are_changed_in_place_part_by_part_are_all_read) {
  EXPECT_EQ(discarded(scored(Uses::kRowByRow)), nullptr);
}

// [2, 10] are 80 bytes, of the 512 that the caching allocator gives.
TEST(DiscardedResults, the_rest_of_what_an_allocator_rounds_up_was_taken_for_unread) {
  TensorProgram program;
  const WrittenTensor hidden = program.weight({2, 32});
  const WrittenTensor weights = program.weight({32, 10});
  for (int step = 0; step < kScoredSteps; ++step) {
    WrittenTensor scores = program.op("aten::mm", 400, {hidden, weights}, {2, 64});  // asks for 512 bytes
    program.op("aten::argmax", 20, {scores.seen_as({2, 10})}, {2});
    program.finish_step();
  }
  EXPECT_EQ(discarded(program.judged()), nullptr);
}

}  // namespace
}  // namespace firelane::advise

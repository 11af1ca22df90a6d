// Rows that are copies of each other, and rows that only look so.
#include <gtest/gtest.h>

#include "advise/tensor_program.h"

namespace firelane::advise {
namespace {

constexpr int kInAll = 4;  // steps

enum class Way { kRepeat, kLookup, kEmbedding, kNoise, kKeys, kFeatures };

// Rows through two layers, and joined with something else.
Judged encoded(Way way) {
  TensorProgram program;
  const WrittenTensor states = program.weight({32, 64});
  const WrittenTensor noise = program.weight({512, 64});
  const WrittenTensor ids = program.weight({512});
  const WrittenTensor weights = program.weight({64, 64});
  const WrittenTensor bias = program.weight({64});
  for (int step = 0; step < kInAll; ++step) {
    WrittenTensor rows;
    if (way == Way::kEmbedding) program.calls("aten::embedding", 103);
    if (way == Way::kLookup || way == Way::kEmbedding) {
      rows = program.op("aten::index_select", 100, {states, {}, ids}, {512, 64}, R"(["", "0", ""])");
    } else if (way == Way::kFeatures) {
      rows = program.copy(100, states.seen_as({32, 64, 16}, {64, 1, 0})).seen_as({512, 64});
    } else {
      rows = program.copy(100, states.seen_as({32, 16, 64}, {64, 0, 1})).seen_as({512, 64});
    }
    if (way == Way::kNoise) rows = program.op("aten::add", 100, {rows, noise}, {512, 64});
    if (way == Way::kKeys) {
      program.op("aten::bmm", 800, {noise.seen_as({32, 16, 64}), rows.seen_as({32, 64, 16})}, {32, 16, 16});
    } else {
      const WrittenTensor hidden = program.op("aten::addmm", 500, {bias, rows, weights}, {512, 64});
      const WrittenTensor bent = program.op("aten::gelu", 200, {hidden}, {512, 64});
      const WrittenTensor out = program.op("aten::mm", 500, {bent, weights}, {512, 64});
      program.op("aten::add", 50, {out, noise}, {512, 64});
    }
    program.finish_step();
  }
  return program.judged();
}

TEST(RepeatedRows, layers_on_repeated_rows_are_told_first_up_to_where_something_else_comes_in) {
  const Judged found = encoded(Way::kRepeat);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "repeated-rows");
  EXPECT_NE(found.findings[0].title.find("each 16 times by aten::copy_"), std::string::npos) << found.findings[0].title;
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 1200e3 * 15 / 16, 100e3);
}

TEST(RepeatedRows, a_lookup_of_more_rows_than_there_are_repeats_them) {
  EXPECT_NE(find(encoded(Way::kLookup), "repeated-rows"), nullptr);
}

// Rows that are looked up more often weigh more in the means of a batch.
TEST(RepeatedRows, means_of_a_batch_were_taken_for_the_same_without_copies_that_are_not_even) {
  const auto normalized = [](bool looked_up) {
    TensorProgram program;
    const WrittenTensor states = program.weight({32, 64});
    const WrittenTensor ids = program.weight({512});
    const WrittenTensor weights = program.weight({64, 64});
    for (int step = 0; step < kInAll; ++step) {
      const WrittenTensor rows =
          looked_up ? program.op("aten::index_select", 100, {states, {}, ids}, {512, 64}, R"(["", "0", ""])")
                    : program.copy(100, states.seen_as({32, 16, 64}, {64, 0, 1})).seen_as({512, 64});
      const WrittenTensor even = program.op("aten::native_batch_norm", 500, {rows}, {512, 64});
      program.op("aten::mm", 500, {even, weights}, {512, 64});
      program.finish_step();
    }
    return program.judged();
  };
  EXPECT_EQ(find(normalized(true), "repeated-rows"), nullptr);
  EXPECT_NE(find(normalized(false), "repeated-rows"), nullptr);
}

TEST(RepeatedRows, words_of_a_small_vocabulary_were_advised_to_go_through_layers_once_each) {
  EXPECT_EQ(find(encoded(Way::kEmbedding), "repeated-rows"), nullptr);
}

TEST(RepeatedRows, rows_that_differ_are_none) {
  EXPECT_EQ(find(encoded(Way::kNoise), "repeated-rows"), nullptr) << "noise was added to each";
  EXPECT_EQ(find(encoded(Way::kKeys), "repeated-rows"), nullptr) << "others ask each copy";
  EXPECT_EQ(find(encoded(Way::kFeatures), "repeated-rows"), nullptr) << "numbers within a row, not rows";
}

TEST(RepeatedRows, copies_of_no_rows_are_no_division_by_zero) {
  TensorProgram program;
  const WrittenTensor weights = program.weight({64, 64});
  for (int step = 0; step < kInAll; ++step) {
    const WrittenTensor none = program.copy(100, weights.seen_as({0, 16, 64}, {64, 0, 1}));
    program.op("aten::mm", 500, {none.seen_as({512, 64}), weights}, {512, 64});
    program.op("aten::native_layer_norm", 100, {none.seen_as({512, 0})}, {512, 64});
    program.finish_step();
  }
  EXPECT_EQ(find(program.judged(), "repeated-rows"), nullptr);
}

enum class Image { kClassesAfter, kBent, kWindows, kWider };

Judged enlarged(Image what) {
  TensorProgram program;
  const WrittenTensor features = program.weight({2, 32, 16, 16});
  const int64_t classes = what == Image::kWider ? 256 : 4;
  const int64_t side = what == Image::kWindows ? 3 : 1;
  const WrittenTensor weights = program.weight({classes, 32, side, side});
  for (int step = 0; step < kInAll; ++step) {
    WrittenTensor large = program.op("aten::upsample_bilinear2d", 500, {features}, {2, 32, 64, 64});
    if (what == Image::kBent) large = program.op("aten::relu", 100, {large}, large.dims);
    program.op("aten::mkldnn_convolution", 600, {large, weights}, {2, classes, 64, 64});
    program.finish_step();
  }
  return program.judged();
}

TEST(RepeatedRows, classes_of_an_enlarged_image_are_enlarged_instead) {
  const Judged found = enlarged(Image::kClassesAfter);
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].id, "repeated-rows");
  EXPECT_NE(found.findings[0].try_code.find("interpolate(conv1x1(x)"), std::string::npos);
  // The convolution goes to a sixteenth, enlarging to an eighth.
  EXPECT_NEAR(static_cast<double>(found.findings[0].gain.middle_ns()), 600e3 * 15 / 16 + 500e3 * 7 / 8, 100e3);
}

TEST(RepeatedRows, enlarged_images_that_are_changed_or_looked_at_in_windows_are_needed) {
  EXPECT_EQ(find(enlarged(Image::kBent), "repeated-rows"), nullptr);
  EXPECT_EQ(find(enlarged(Image::kWindows), "repeated-rows"), nullptr);
  EXPECT_EQ(find(enlarged(Image::kWider), "repeated-rows"), nullptr) << "enlarging eight times as much costs more";
}

}  // namespace
}  // namespace firelane::advise

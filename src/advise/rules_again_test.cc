// Work that was done before: found where it is the same work again, absent where it only looks like it.
#include <gtest/gtest.h>

#include <string>

#include "advise/diagnose.h"
#include "advise/testing.h"

namespace firelane::advise {
namespace {

// A program whose host is late: every operator takes 40 us and launches a kernel of 20 us.
class Again : public WrittenProgram<Again> {
 public:
  struct Op {
    int64_t number = kNoNumber;
    std::string dims = {};
    std::string types = {};
    double us = 40;
    bool launches = true;
    bool copies_in = false;
  };

  Again& op(std::string_view name) { return op(name, Op{}); }
  Again& op(std::string_view name, const Op& what) {
    builder_.op(name, {.start_us = at_,
                       .end_us = at_ + what.us,
                       .sequence_number = what.number,
                       .dims = what.dims,
                       .types = what.types});
    if (what.copies_in) {
      builder_.call("cudaMemcpyAsync", {.start_us = at_ + 5, .end_us = at_ + 25, .correlation = correlation_});
      builder_.copy("Memcpy HtoD (Pageable -> Device)",
                    {.start_us = at_ + 20, .end_us = at_ + 22, .correlation = correlation_++, .bytes = 4096});
    } else if (what.launches) {
      builder_.call("cudaLaunchKernel", {.start_us = at_ + 20, .end_us = at_ + 26, .correlation = correlation_});
      builder_.kernel("k", {.start_us = at_ + 28, .end_us = at_ + 48, .correlation = correlation_++});
    }
    at_ += what.us + 10;
    return *this;
  }
  Again& rest(double us) {
    at_ += us;
    return *this;
  }
  // A node on a CPU, which computes for `us`.
  Again& works(std::string_view name, int64_t number, double us) {
    return op("autograd::engine::evaluate_function: " + std::string(name),
              {.number = number, .us = us, .launches = false});
  }
  Again& leaf(bool adds_up) {
    const double from = at_;
    op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", {.us = 4, .launches = false});
    if (adds_up) builder_.op("torch::autograd::AccumulateGrad", {.start_us = from + 1, .end_us = from + 3});
    return *this;
  }
  Again& node(std::string_view name, int64_t number) {
    return op("autograd::engine::evaluate_function: " + std::string(name), {.number = number});
  }
};

Judged with_passes(int passes, bool same_nodes) {
  Again program;
  int64_t number = 100;
  for (int step = 0; step < 4; ++step) {
    const int64_t first = number;
    for (int i = 0; i < 10; ++i) program.op("aten::mul", {.number = number++});
    for (int pass = 0; pass < passes; ++pass) {
      for (int i = 9; i >= 0; --i) program.node("MulBackward0", same_nodes ? first + i : number++);
    }
    program.end_step();
  }
  return program.judged();
}

TEST(RepeatedBackward, nodes_that_run_again_in_a_step_are_told_with_how_often) {
  const Judged judged = with_passes(3, true);
  const Finding* finding = find(judged, "repeated-backward");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->title.find("up to 3 times"), std::string::npos) << finding->title;
  EXPECT_NE(finding->title.find("20 nodes"), std::string::npos) << finding->title;
  EXPECT_EQ(judged.findings[0].id, "repeated-backward");
  EXPECT_EQ(find(with_passes(1, true), "repeated-backward"), nullptr) << "once";
  EXPECT_EQ(find(with_passes(3, false), "repeated-backward"), nullptr) << "other nodes: several models, or checkpoints";
}

// Passes that each end in the leaf that the gradient is asked of: it is handed over, or added to what the leaf has.
Judged with_leaf(int passes, bool adds_up) {
  Again program;
  int64_t number = 100;
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 4; ++i) program.op("aten::tanh", {.number = number + i, .us = 40, .launches = false});
    for (int pass = 0; pass < passes; ++pass) {
      for (int i = 3; i >= 0; --i) program.works("TanhBackward0", number + i, 60);
      program.leaf(adds_up);
    }
    number += 4;
    program.end_step();
  }
  return program.judged();
}

TEST(RepeatedBackward, rows_of_a_jacobian_are_computed_all_the_same) {
  const Judged rows = with_leaf(12, false);
  const Judged losses = with_leaf(12, true);
  const Finding* of_rows = find(rows, "repeated-backward");
  const Finding* of_losses = find(losses, "repeated-backward");
  ASSERT_NE(of_rows, nullptr);
  ASSERT_NE(of_losses, nullptr);
  EXPECT_NE(of_rows->try_code.find("is_grads_batched"), std::string::npos) << of_rows->try_code;
  EXPECT_NE(of_losses->try_code.find("loss_a + loss_b"), std::string::npos) << of_losses->try_code;
  EXPECT_LT(3 * of_rows->gain.middle_ns(), 2 * of_losses->gain.middle_ns()) << "60 us of each node are computing";
  const Judged few = with_leaf(3, false);
  ASSERT_NE(find(few, "repeated-backward"), nullptr);
  EXPECT_NE(find(few, "repeated-backward")->try_code.find("loss_a + loss_b"), std::string::npos) << "no Jacobian";
}

// A penalty on gradients: what the first pass computes is differentiated by the second one, which goes through the
// nodes of the first as well. Both are needed, and one call of backward was advised.
class OfGradients : public WrittenProgram<OfGradients> {
 public:
  Judged penalized(bool of_gradients) {
    int64_t number = 100;
    for (int step = 0; step < 4; ++step) {
      const int64_t first = number;
      for (int i = 0; i < 4; ++i) op("aten::tanh", number++);
      const double begin = at_;
      for (int64_t i = first + 3; i >= first; --i) node("TanhBackward0", i, number++);
      if (of_gradients) {
        for (int64_t i = 3; i >= 0; --i) {
          builder_.flow("fwdbwd", ++flows_, {.start_us = begin + kNodeUs * static_cast<double>(i) + 1},
                        {.start_us = at_ + 1});
          node("MulBackward0", first + 4 + i, kNoNumber);
        }
      }
      for (int64_t i = first + 3; i >= first; --i) node("TanhBackward0", i, kNoNumber);
      end_step();
    }
    return judged();
  }

 private:
  static constexpr double kNodeUs = 62;
  void op(std::string_view name, int64_t number) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + 40, .sequence_number = number});
    at_ += 50;
  }
  void node(const std::string& name, int64_t number, int64_t made) {
    builder_.op("autograd::engine::evaluate_function: " + name,
                {.start_us = at_, .end_us = at_ + 60, .sequence_number = number});
    builder_.op(made == kNoNumber ? name : "aten::mul",
                {.start_us = at_ + 1, .end_us = at_ + 59, .sequence_number = made == kNoNumber ? number : made});
    at_ += kNodeUs;
  }
  int64_t flows_ = 0;
};

TEST(RepeatedBackward, a_pass_through_gradients_was_taken_for_a_second_one_of_the_same) {
  EXPECT_NE(find(OfGradients().penalized(false), "repeated-backward"), nullptr);
  EXPECT_EQ(find(OfGradients().penalized(true), "repeated-backward"), nullptr);
}

// Two passes through ten nodes; the way into the second takes `way_us` more.
Judged with_way(double way_us) {
  Again program;
  int64_t number = 100;
  for (int step = 0; step < 4; ++step) {
    const int64_t first = number;
    for (int i = 0; i < 10; ++i) program.op("aten::mul", {.number = number++});
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) program.rest(way_us).op("aten::ones_like");
      for (int i = 9; i >= 0; --i) program.node("MulBackward0", first + i);
    }
    program.end_step();
  }
  return program.judged();
}

TEST(RepeatedBackward, the_way_from_one_pass_into_the_next_goes_with_it) {
  const auto gain_ns = [](double way_us) {
    const Judged judged = with_way(way_us);
    const Finding* finding = find(judged, "repeated-backward");
    return finding == nullptr ? 0.0 : static_cast<double>(finding->gain.middle_ns());
  };
  EXPECT_NEAR(gain_ns(300) - gain_ns(0), 300e3, 30e3);
  EXPECT_LT(gain_ns(5000) - gain_ns(0), 300e3) << "code of the program stands between the passes";
}

Judged with_tensor(const std::string& dims, bool random) {
  Again program;
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 4; ++i) {
      program.op("aten::linear", {.dims = "[[32, 64], [64, 64]]", .types = R"(["float", "float"])"});
    }
    if (random) program.op("aten::randn", {.launches = false});
    program.op("aten::empty", {.launches = false})
        .op("aten::to", {.dims = dims, .types = R"(["float"])", .us = 60, .copies_in = true})
        .op("aten::lift_fresh", {.dims = dims, .types = R"(["float"])", .us = 2, .launches = false})
        .end_step();
  }
  return program.judged();
}

TEST(ConstantCopies, a_tensor_made_of_numbers_in_every_step_is_told_and_a_batch_is_not) {
  EXPECT_NE(find(with_tensor("[[3, 1, 1]]", false), "constant-copies"), nullptr);
  EXPECT_EQ(find(with_tensor("[[32]]", false), "constant-copies"), nullptr) << "as many numbers as the batch has rows";
  EXPECT_EQ(find(with_tensor("[[3, 1, 1]]", true), "constant-copies"), nullptr) << "random numbers are no constants";
}

TEST(WholeCopies, only_tensors_that_stay_as_they_are_count) {
  const auto cloned = [](const std::string& dims, std::string_view name) {
    Again program;
    for (int step = 0; step < 4; ++step) {
      program.op("aten::linear").op("aten::relu");
      for (int i = 0; i < 4; ++i) program.op(name, {.dims = dims, .types = R"(["float"])"});
      program.end_step();
    }
    return program.judged();
  };
  EXPECT_NE(find(cloned("[[1024, 1024]]", "aten::clone"), "whole-copies"), nullptr);
  EXPECT_EQ(find(cloned("[[16]]", "aten::clone"), "whole-copies"), nullptr) << "small";
  EXPECT_EQ(find(cloned("[[1024, 1024]]", "aten::add"), "whole-copies"), nullptr);
}

// Layers of a model, and a backward pass for them.
Judged with_rounds(bool shared_weights) {
  Again program;
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 12; ++i) program.op("aten::conv2d").op("aten::batch_norm").op("aten::relu");
    for (int i = 0; i < 12; ++i) {
      program.node("ReluBackward0", kNoNumber).node("ConvolutionBackward0", kNoNumber);
      if (!shared_weights) program.node("torch::autograd::AccumulateGrad", kNoNumber);
    }
    if (shared_weights) program.node("torch::autograd::AccumulateGrad", kNoNumber);
    program.end_step();
  }
  return program.judged();
}

TEST(Loops, rounds_that_go_back_through_the_same_weights_are_no_layers) {
  EXPECT_NE(find(with_rounds(true), "repeated-operators"), nullptr);
  EXPECT_EQ(find(with_rounds(false), "repeated-operators"), nullptr);
}

TEST(Loops, attention_over_one_head_after_another_is_a_loop_and_layers_with_attention_are_none) {
  const auto attended = [](bool with_weights) {
    Again program;
    for (int step = 0; step < 4; ++step) {
      program.op("aten::linear");
      for (int i = 0; i < 16; ++i) {
        program.op("aten::select", {.us = 3, .launches = false}).op("aten::scaled_dot_product_attention");
        if (with_weights) program.op("aten::linear");
      }
      program.op("aten::stack").end_step();
    }
    return program.judged();
  };
  EXPECT_NE(find(attended(false), "repeated-operators"), nullptr);
  EXPECT_EQ(find(attended(true), "repeated-operators"), nullptr);
}

TEST(Loops, updates_of_one_tensor_after_another_are_a_loop) {
  const auto updated = [](std::string_view name) {
    Again program;
    for (int step = 0; step < 4; ++step) {
      program.op("aten::linear").op("aten::relu");
      for (int i = 0; i < 32; ++i) program.op(name).op("aten::add_");
      program.end_step();
    }
    return program.judged();
  };
  EXPECT_NE(find(updated("aten::mul_"), "repeated-operators"), nullptr);
  EXPECT_EQ(find(updated("aten::mul"), "repeated-operators"), nullptr);
}

}  // namespace
}  // namespace firelane::advise

// Loops, work on the CPU and slow steps: found with the fault, absent without it.
#include <gtest/gtest.h>

#include "advise/diagnose.h"
#include "advise/testing.h"
#include "import/metadata.h"
#include "model/trace_builder.h"

namespace firelane::advise {
namespace {

// A device program that the host holds up: each op takes 40 us and launches a kernel of 3 us.
class Program : public WrittenProgram<Program> {
 public:
  Program& op(std::string_view name, std::string_view dims = {}) {
    const std::string_view types = dims.empty() ? "" : R"(["float", "float", "float"])";
    builder_.op(name, {.start_us = at_, .end_us = at_ + 40, .dims = dims, .types = types});
    builder_.call("cudaLaunchKernel", {.start_us = at_ + 20, .end_us = at_ + 26, .correlation = correlation_});
    builder_.kernel("k", {.start_us = at_ + 28, .end_us = at_ + 31, .correlation = correlation_++});
    at_ += 50;
    return *this;
  }
  Program& view(std::string_view name) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + 4});
    at_ += 6;
    return *this;
  }
  Program& item(double wait_us = 0) {
    builder_.op("aten::item", {.start_us = at_, .end_us = at_ + 20 + wait_us});
    builder_.call("cudaMemcpyAsync", {.start_us = at_ + 4, .end_us = at_ + 8, .correlation = correlation_});
    builder_.copy("Memcpy DtoH (Device -> Pageable)",
                  {.start_us = at_ + 9, .end_us = at_ + 10 + wait_us, .correlation = correlation_++, .bytes = 4});
    builder_.call("cudaStreamSynchronize", {.start_us = at_ + 9, .end_us = at_ + 14 + wait_us});
    at_ += 25 + wait_us;
    return *this;
  }
  // On the CPU alone.
  Program& computes(std::string_view name, double us) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + us});
    at_ += us + 1;
    return *this;
  }
  // An operator on the CPU that calls `count` others, each of `us`.
  Program& joins(std::string_view name, std::string_view inner, int count, double us) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + count * (us + 2) + 2});
    for (int i = 0; i < count; ++i) {
      const double start = at_ + 2 + i * (us + 2);
      builder_.op(inner, {.start_us = start, .end_us = start + us});
    }
    at_ += count * (us + 2) + 3;
    return *this;
  }
  // Waits for all that was launched, and for the copy.
  Program& copies_from_device(double us) {
    builder_.op("aten::to", {.start_us = at_, .end_us = at_ + us});
    builder_.call("cudaMemcpyAsync", {.start_us = at_ + 2, .end_us = at_ + us - 2, .correlation = correlation_});
    builder_.copy(
        "Memcpy DtoH (Device -> Pageable)",
        {.start_us = at_ + 5, .end_us = at_ + us - 3, .correlation = correlation_++, .bytes = int64_t{64} << 20});
    at_ += us + 1;
    return *this;
  }
  Program& copies_to_device(double us) {
    builder_.op("aten::to", {.start_us = at_, .end_us = at_ + us});
    builder_.call("cudaMemcpyAsync", {.start_us = at_ + 2, .end_us = at_ + us - 2, .correlation = correlation_});
    builder_.copy(
        "Memcpy HtoD (Pageable -> Device)",
        {.start_us = at_ + 5, .end_us = at_ + us - 3, .correlation = correlation_++, .bytes = int64_t{64} << 20});
    at_ += us + 1;
    return *this;
  }
};

template <typename Round>
Judged looped(int rounds, const Round& round) {
  Program program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::mm").op("aten::relu");
    for (int i = 0; i < rounds; ++i) round(program);
    program.op("aten::mean").end_step();
  }
  return program.judged();
}

TEST(Loops, a_loop_over_pieces_of_a_tensor_is_named_before_launch_overhead) {
  const Judged judged =
      looped(32, [](Program& program) { program.view("aten::select").op("aten::mm").op("aten::tanh"); });
  ASSERT_FALSE(judged.findings.empty());
  const Finding& finding = judged.findings[0];
  EXPECT_EQ(finding.id, "repeated-operators");
  EXPECT_NE(finding.title.find("aten::mm, aten::tanh 32 times"), std::string::npos) << finding.title;
  // 31 of 32 rounds of 106 us, less the cost of recording them.
  EXPECT_NEAR(static_cast<double>(finding.gain.high_ns), 31 * 106e3, 0.2 * 31 * 106e3);
}

TEST(Loops, rounds_that_differ_are_a_loop_too) {
  int round = 0;
  const auto crop = [&](Program& program) {
    program.view("aten::slice");
    ++round;
    if (round * round % 11 < 4) program.op("aten::flip");
    program.op("aten::mean").op("aten::sub").op("aten::div");
  };
  const Judged judged = looped(32, crop);
  ASSERT_FALSE(judged.findings.empty());
  EXPECT_EQ(judged.findings[0].id, "repeated-operators");
  EXPECT_NE(judged.findings[0].title.find("32 times in a row"), std::string::npos) << judged.findings[0].title;
  const auto layer = [&](Program& program) {
    program.view("aten::slice");
    ++round;
    if (round * round % 11 < 4) program.op("aten::dropout");
    program.op("aten::linear").op("aten::gelu").op("aten::add");
  };
  EXPECT_EQ(find(looped(32, layer), "repeated-operators"), nullptr) << "layers, some with dropout";
}

// Two layers, a loop of 16 rounds in between, and the backward pass of all: nodes have the numbers of their operators.
Judged looped_and_back(bool with_loop) {
  TraceBuilder builder;
  double at = 0;
  int64_t number = 0;
  for (int step = 0; step < 4; ++step) {
    const double from = at;
    std::vector<int64_t> numbers;
    const auto forward = [&](std::string_view name) {
      builder.op(name, {.start_us = at, .end_us = at + 20, .sequence_number = ++number});
      numbers.push_back(number);
      at += 25;
    };
    forward("aten::mm");
    for (int i = 0; with_loop && i < 16; ++i) {
      builder.op("aten::select", {.start_us = at, .end_us = at + 2});
      at += 3;
      forward("aten::gru");
      forward("aten::mean");
    }
    forward("aten::mm");
    int turn = 0;
    for (auto each = numbers.rbegin(); each != numbers.rend(); ++each) {
      // No two rounds of the backward pass look the same.
      const std::string node = "autograd::engine::evaluate_function: N" + std::to_string(turn++);
      builder.op(node, {.start_us = at, .end_us = at + 60, .sequence_number = *each, .forward_thread = 1});
      at += 62;
    }
    builder.step(step, {.start_us = from, .end_us = at});
  }
  const Model model = builder.build();
  return diagnose(model);
}

TEST(Loops, iterations_that_differ_in_a_trace_without_steps_are_no_rounds) {
  Program program;
  for (int round = 0; round < 32; ++round) {
    program.view("aten::slice");
    if (round * round % 11 < 4) program.op("aten::flip");
    program.op("aten::mean").op("aten::sub").op("aten::div");
  }
  EXPECT_EQ(find(program.judged(), "repeated-operators"), nullptr);
}

TEST(Loops, the_backward_pass_of_the_rounds_goes_with_them_whatever_it_looks_like) {
  const Judged judged = looped_and_back(true);
  const Finding* finding = find(judged, "repeated-operators");
  ASSERT_NE(finding, nullptr);
  // 16 rounds of 53 us forward, of which 15 have 124 us of nodes each.
  EXPECT_NEAR(static_cast<double>(finding->cost_ns), 16 * 53e3 + 15 * 124e3, 0.05 * 2700e3);
  EXPECT_EQ(find(looped_and_back(false), "repeated-operators"), nullptr);
}

TEST(Loops, layers_of_a_model_are_no_loop) {
  const auto is_found = [](const Judged& judged) { return find(judged, "repeated-operators") != nullptr; };
  EXPECT_FALSE(is_found(looped(32, [](Program& program) { program.op("aten::linear").op("aten::relu"); })));
  EXPECT_FALSE(is_found(looped(32, [](Program& program) {
    program.view("aten::slice").op("aten::layer_norm").op("aten::linear").op("aten::gelu").op("aten::add");
  })));
  EXPECT_FALSE(is_found(looped(4, [](Program& program) { program.view("aten::select").op("aten::mm"); }))) << "few";
}

TEST(Loops, passes_over_one_sample_each_are_a_loop_and_passes_over_batches_accumulate_gradients) {
  const auto passes = [](std::string_view dims) {
    return looped(8, [&](Program& program) {
      program.op("aten::linear", dims).op("aten::gelu").op("aten::mean");
      program.op("autograd::engine::evaluate_function: AddmmBackward0");
    });
  };
  EXPECT_NE(find(passes("[[1, 64], [64, 64], [64]]"), "repeated-operators"), nullptr);
  EXPECT_EQ(find(passes("[[16, 64], [64, 64], [64]]"), "repeated-operators"), nullptr);
  EXPECT_EQ(find(passes({}), "repeated-operators"), nullptr) << "sizes are not known";
}

TEST(Loops, rounds_that_begin_with_what_the_last_one_chose_are_none) {
  const auto rollout = [](Program& program) {
    program.view("aten::select").op("aten::mm").op("aten::softmax_").op("aten::multinomial").op("aten::add");
  };
  EXPECT_EQ(find(looped(16, rollout), "repeated-operators"), nullptr);
  const auto requests = [](Program& program) {
    program.view("aten::select").copies_to_device(60).op("aten::mm").op("aten::argmax").op("aten::add");
  };
  EXPECT_NE(find(looped(16, requests), "repeated-operators"), nullptr) << "each brings its own input";
}

TEST(Loops, going_through_the_pieces_of_a_tensor_is_a_loop_where_it_was_taken_apart_into_as_many) {
  const auto apart = [](std::string_view dims) {
    Program program;
    for (int step = 0; step < 4; ++step) {
      program.op("aten::mm").op("aten::unbind", dims);
      for (int i = 0; i < 16; ++i) program.op("aten::sub").op("aten::square").op("aten::topk");
      program.op("aten::mm").end_step();
    }
    return program.judged();
  };
  EXPECT_NE(find(apart("[[16, 8, 3]]"), "repeated-operators"), nullptr);
  EXPECT_EQ(find(apart("[[3, 8, 16]]"), "repeated-operators"), nullptr) << "queries, keys and values";
}

TEST(Loops, views_in_a_row_before_a_loop_are_what_it_goes_through) {
  const auto gain_ns = [](int views) {
    int round = 0;
    Program program;
    for (int step = 0; step < 4; ++step) {
      for (int i = 0; i < views; ++i) program.view("aten::detach");
      for (int i = 0; i < 16; ++i) {
        const std::string_view dims = ++round % 2 == 0 ? "[[64, 64], []]" : "[[64], []]";
        program.op("aten::mul_", dims).op("aten::add_", dims);
      }
      program.op("aten::mm").end_step();
    }
    const Judged judged = program.judged();
    const Finding* finding = find(judged, "repeated-operators");
    return finding == nullptr ? 0.0 : static_cast<double>(finding->gain.middle_ns());
  };
  EXPECT_GT(gain_ns(32), gain_ns(0) + 20e3);
  EXPECT_LT(gain_ns(8), gain_ns(0) + 5e3) << "fewer than there are rounds";
}

TEST(Loops, changes_in_place_of_one_tensor_after_another_are_a_loop_and_those_of_one_are_none) {
  int round = 0;
  const auto averages = [&](Program& program) {
    const std::string_view dims = ++round % 2 == 0 ? "[[64, 64], []]" : "[[64], []]";
    program.op("aten::mul_", dims).op("aten::add_", dims);
  };
  EXPECT_NE(find(looped(16, averages), "repeated-operators"), nullptr);
  const auto state = [](Program& program) { program.op("aten::mul_", "[[64], []]").op("aten::add_", "[[64], []]"); };
  EXPECT_EQ(find(looped(16, state), "repeated-operators"), nullptr);
}

TEST(Loops, numbers_that_are_read_one_by_one_are_a_matter_of_syncs) {
  const Judged judged = looped(32, [](Program& program) { program.op("aten::linalg_vector_norm").item(); });
  ASSERT_FALSE(judged.findings.empty());
  EXPECT_EQ(judged.findings[0].id, "host-sync");
  EXPECT_NE(judged.findings[0].title.find("one by one"), std::string::npos);
  EXPECT_EQ(find(judged, "repeated-operators"), nullptr);
}

TEST(Syncs, a_grad_scalers_read_is_told_from_the_programs_own) {
  const auto title = [](bool scaler, int reads) {
    Program program;
    for (int step = 0; step < 4; ++step) {
      for (int i = 0; i < 2; ++i) program.op("aten::mm");
      if (scaler) program.op("aten::_amp_foreach_non_finite_check_and_unscale_");
      for (int i = 0; i < reads; ++i) program.item(100).op("aten::add");
      program.end_step();
    }
    const Judged judged = program.judged();
    const Finding* finding = find(judged, "host-sync");
    return finding == nullptr ? std::string() : finding->title;
  };
  EXPECT_NE(title(true, 1).find("GradScaler"), std::string::npos) << title(true, 1);
  EXPECT_EQ(title(false, 1).find("GradScaler"), std::string::npos);
  EXPECT_EQ(title(true, 3).find("GradScaler"), std::string::npos) << "most are the program's own";
}

TEST(Syncs, the_norm_of_the_gradients_is_told_from_other_numbers) {
  const auto title = [](bool norm) {
    Program program;
    for (int step = 0; step < 4; ++step) {
      for (int i = 0; i < 4; ++i) program.op("aten::mm");
      program.op(norm ? "aten::_foreach_norm" : "aten::mul").op("aten::stack").item(100);
      for (int i = 0; i < 4; ++i) program.op("aten::mm");
      program.end_step();
    }
    const Judged judged = program.judged();
    const Finding* finding = find(judged, "host-sync");
    return finding == nullptr ? std::string() : finding->title;
  };
  EXPECT_NE(title(true).find("the norm of the gradients"), std::string::npos) << title(true);
  EXPECT_EQ(title(false).find("the norm of the gradients"), std::string::npos);
}

TEST(HostCompute, what_is_brought_from_the_device_to_be_computed_with_goes_with_it) {
  Program program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::mm").copies_from_device(3000).computes("aten::softmax", 2000).copies_to_device(100);
    program.op("aten::mm").end_step();
  }
  const Judged judged = program.judged();
  ASSERT_FALSE(judged.findings.empty());
  const Finding& finding = judged.findings[0];
  EXPECT_EQ(finding.id, "host-compute");
  EXPECT_NE(finding.title.find("copied from the device"), std::string::npos) << finding.title;
  EXPECT_NEAR(static_cast<double>(finding.gain.middle_ns()), 5e6, 4e5);
  EXPECT_EQ(find(judged, "host-sync"), nullptr) << "the wait goes with it";
}

TEST(HostCompute, a_copy_to_the_cpu_that_nothing_is_computed_with_there_is_a_wait) {
  Program program;
  for (int step = 0; step < 4; ++step) program.op("aten::mm").copies_from_device(3000).op("aten::mm").end_step();
  const Judged judged = program.judged();
  EXPECT_EQ(find(judged, "host-compute"), nullptr);
  EXPECT_NE(find(judged, "host-sync"), nullptr);
}

TEST(HostCompute, a_tensor_built_on_the_cpu_is_named_with_its_copy) {
  Program program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::mm").computes("aten::mul", 4000).computes("aten::masked_fill", 2000).copies_to_device(1000);
    program.op("aten::mm").end_step();
  }
  const Judged judged = program.judged();
  ASSERT_FALSE(judged.findings.empty());
  const Finding& finding = judged.findings[0];
  EXPECT_EQ(finding.id, "host-compute");
  EXPECT_NE(finding.title.find("64.0 MiB"), std::string::npos) << finding.title;
  EXPECT_NEAR(static_cast<double>(finding.gain.high_ns), 7e6, 2e5);
  EXPECT_EQ(find(judged, "pageable-copies"), nullptr) << "the copy goes with it";
  EXPECT_EQ(find(judged, "launch-overhead"), nullptr);
}

TEST(HostCompute, pieces_that_are_joined_go_with_the_operator_that_joins_them) {
  Program program;
  for (int step = 0; step < 4; ++step) {
    program.op("aten::mm");
    for (int i = 0; i < 100; ++i) program.computes("aten::select", 30);
    program.computes("aten::stack", 1000).copies_to_device(500).op("aten::mm").end_step();
  }
  const Judged judged = program.judged();
  const Finding* finding = find(judged, "host-compute");
  ASSERT_NE(finding, nullptr);
  EXPECT_GT(finding->cost_ns, 4'400'000);
}

TEST(HostCompute, a_thousand_views_in_one_operator_are_no_computing) {
  const auto found = [](double inner_us) {
    Program program;
    for (int step = 0; step < 4; ++step) {
      program.op("aten::mm").joins("aten::unflatten_dense_tensors", "aten::narrow", 200, inner_us);
      program.op("aten::mm").end_step();
    }
    return find(program.judged(), "host-compute") != nullptr;
  };
  EXPECT_FALSE(found(8));
  EXPECT_TRUE(found(40)) << "these do compute";
}

TEST(HostCompute, operators_that_launch_are_none) {
  Program program;
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 6; ++i) program.op("aten::mm").op("aten::gelu").op("aten::layer_norm");
    program.end_step();
  }
  EXPECT_EQ(find(program.judged(), "host-compute"), nullptr);
}

TEST(SlowSteps, steps_that_were_only_timed_count_and_tell_their_period) {
  const auto timed = [](const auto& ms_of, double waited_us = -1) {
    TraceBuilder builder;
    double at_us = 0;
    for (int64_t i = 0; i < 34; ++i) {
      const double ms = ms_of(i);
      const double waited = waited_us < 0 || i % 8 != 7 ? std::min(0.0, waited_us) : waited_us;
      builder.timed_step(i, {.start_us = at_us, .end_us = at_us + 1000 * ms, .waited_us = waited});
      at_us += 1000 * ms;
    }
    builder.metadata("torch", R"({"threads": 1})");
    Model model = builder.build();
    importer::interpret_metadata(model.info);
    return model;
  };
  const auto one_in_eight = [](int64_t i) { return i % 8 == 7 ? 90 : 10 + static_cast<double>(i) / 1000; };
  const analyze::SlowSteps slow = analyze::find_slow_steps(timed(one_in_eight));
  EXPECT_EQ(slow.numbers, (std::vector<int64_t>{7, 15, 23, 31}));
  EXPECT_EQ(slow.timed, 32);
  EXPECT_NEAR(static_cast<double>(slow.excess_ns), 80e6 / 8, 1e5);
  EXPECT_TRUE(analyze::find_slow_steps(timed([](int64_t) { return 10.0; })).numbers.empty());
  EXPECT_TRUE(analyze::find_slow_steps(timed(one_in_eight, 80'000)).numbers.empty()) << "they had no core";
}

}  // namespace
}  // namespace firelane::advise

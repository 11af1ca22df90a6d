#include "advise/device_words.h"

#include <gtest/gtest.h>

#include "advise/diagnose.h"
#include "advise/testing.h"
#include "import/load.h"
#include "import/samples_for_tests.h"

namespace firelane::advise {
namespace {

TEST(DeviceWords, amd_has_hip_and_keeps_torch_cuda) {
  EXPECT_EQ(in_device_words("CUDA graphs help; torch.cuda.synchronize() waits", Accelerator::kHip),
            "HIP graphs help; torch.cuda.synchronize() waits");
  EXPECT_EQ(in_device_words("use tensor cores", Accelerator::kHip), "use matrix cores");
}

TEST(DeviceWords, others_have_a_module_of_their_own) {
  EXPECT_EQ(in_device_words("with torch.autocast('cuda', torch.bfloat16): ...", Accelerator::kXpu),
            "with torch.autocast('xpu', torch.bfloat16): ...");
  EXPECT_EQ(in_device_words("torch.cuda.empty_cache()", Accelerator::kNpu), "torch.npu.empty_cache()");
  EXPECT_EQ(in_device_words("CUDA graphs", Accelerator::kCuda), "CUDA graphs");
}

TEST(DeviceWords, steps_are_marked_in_the_words_of_the_tool_that_wrote_the_trace) {
  const std::string note = "no steps were found; " + std::string(kCallStep);
  EXPECT_EQ(fit_note({.origin = Origin::kNsight}, note),
            "no steps were found; push an NVTX range called \"step N\" around each iteration");
  EXPECT_EQ(fit_note({.origin = Origin::kXPlane}, note),
            "no steps were found; mark them with jax.profiler.StepTraceAnnotation(\"train\", step_num=i)");
}

TEST(DeviceWords, without_a_schedule_the_advice_to_call_step_marked_no_steps) {
  const std::string note = "no steps were found; " + std::string(kCallStep);
  EXPECT_EQ(fit_note({.origin = Origin::kKineto}, note),
            "no steps were found; record with schedule=..., and call prof.step() after each iteration");
  EXPECT_EQ(fit_note({.origin = Origin::kFirelane, .environment = {.front = Front::kProfile}}, note), note);
}

TEST(DeviceWords, a_verdict_speaks_of_the_device_of_the_trace) {
  EXPECT_EQ(fit_meaning({.accelerator = Accelerator::kTpu}, "A faster GPU would not help."),
            "A faster TPU would not help.");
  EXPECT_EQ(fit_meaning({.accelerator = Accelerator::kHip}, "A faster GPU would not help."),
            "A faster GPU would not help.");
}

TEST(DeviceWords, what_only_cuda_has_is_not_advised_elsewhere) {
  std::vector<Finding> findings = {{.id = "fp32-matmul", .try_code = "torch.backends.cuda.matmul.allow_tf32 = True"}};
  fit_to_device({.accelerator = Accelerator::kNpu}, findings);
  EXPECT_TRUE(findings.empty());
}

TEST(DeviceWords, jax_is_advised_in_its_own_words) {
  std::vector<Finding> findings = {{.id = "launch-overhead", .try_code = "model = torch.compile(model)"},
                                   {.id = "dtype-ping-pong", .try_code = "with torch.autocast('cuda'): ..."}};
  fit_to_device({.origin = Origin::kXPlane, .accelerator = Accelerator::kTpu}, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].try_code.find("jax.jit"), std::string::npos);
}

// The whole way, on real traces: whatever is found, no word of another device or framework.
TEST(DeviceWords, no_finding_of_another_device_speaks_of_cuda) {
  struct Sample {
    const char* file;
    std::vector<std::string_view> forbidden;
  };
  int seen = 0;
  for (const Sample& sample :
       {Sample{"tpu_v6e_inference.xplane.pb", {"torch", "CUDA"}}, Sample{"jax_mi300_conv.xplane.pb", {"torch", "CUDA"}},
        Sample{"ascend_trace_view.json.gz", {"torch.cuda", "torch.backends.cuda", "CUDA"}},
        Sample{"kineto_mtia_inference.json.gz", {"torch.cuda", "CUDA"}},
        Sample{"kineto_mi300_qwen.json.gz", {"CUDA"}}}) {
    const std::string path = importer::sample_path(sample.file);
    if (path.empty()) continue;
    ++seen;
    Result<Model> model = importer::load_trace(path);
    ASSERT_TRUE(model.ok()) << model.error().message;
    const Judged judged = diagnose(model.value());
    for (const Finding& finding : judged.findings) {
      for (const std::string_view word : sample.forbidden) {
        for (const std::string* text : {&finding.title, &finding.try_text, &finding.try_code, &finding.confirm_by})
          EXPECT_EQ(text->find(word), std::string::npos) << sample.file << ": " << *text;
      }
    }
  }
  if (seen == 0) GTEST_SKIP() << "no samples here; set FIRELANE_SAMPLES to their folder";
}

TEST(NoVerdict, a_device_that_nobody_knows_is_not_judged_as_a_cpu_program) {
  Result<Model> model = importer::load_trace_bytes(R"([
    {"ph": "M", "name": "process_labels", "pid": 5, "tid": 0, "args": {"labels": "XYZ GPU 0"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5000},
    {"ph": "X", "cat": "gadget", "name": "matmul", "pid": 5, "tid": 3, "ts": 12, "dur": 900}])",
                                                   "odd.json");
  ASSERT_TRUE(model.ok());
  const Judged judged = diagnose(model.value());
  EXPECT_EQ(judged.verdict.label, "no verdict");
  EXPECT_EQ(judged.state, State::kNoVerdict);
  EXPECT_TRUE(judged.nothing_to_say());
  EXPECT_TRUE(judged.findings.empty());
  EXPECT_EQ(judged.study.bound.limit, analyze::Limit::kUnknown);
}

TEST(NoVerdict, kernels_without_a_host_do_not_blame_it) {
  Result<Model> model = importer::load_trace_bytes(
      "\"Kind\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\"\n"
      "\"KERNEL_DISPATCH\",\"a\",1000,2000\n\"KERNEL_DISPATCH\",\"b\",900000,901000\n",
      "kernels.csv");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(diagnose(model.value()).study.bound.limit, analyze::Limit::kUnknown);
}

}  // namespace
}  // namespace firelane::advise

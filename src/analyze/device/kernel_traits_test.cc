// Kernel names as the libraries write them, and what they tell.
#include "analyze/device/kernel_traits.h"

#include <gtest/gtest.h>

#include <string>

#include "analyze/device/device_peaks.h"
#include "model/trace_builder.h"

namespace firelane::analyze {
namespace {

std::string text(std::string_view kernel_name) {
  const KernelTraits traits = kernel_traits(kernel_name);
  return std::string(name_of(traits.kernel_class)) + " " + std::string(name_of(traits.tensor_cores)) + " " +
         std::string(name_of(traits.precision));
}

TEST(KernelTraits, cublas_names_tell_precision_and_tensor_cores) {
  EXPECT_EQ(text("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"), "matmul yes bf16");
  EXPECT_EQ(text("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN"), "matmul yes fp16");
  EXPECT_EQ(text("nvjet_sm90_sss_64x32_64x16_1x1_h_bz_TNT"), "matmul yes tf32");
  EXPECT_EQ(text("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4"),
            "matmul no fp32");
  EXPECT_EQ(text("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_tensor16x8x8_kernel"),
            "matmul yes tf32");
  EXPECT_EQ(text("ampere_sgemm_128x64_nn"), "matmul no fp32");
  EXPECT_EQ(text("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nn"), "matmul yes bf16");
  EXPECT_EQ(text("volta_h884gemm_64x128_ldg8_nn"), "matmul yes fp16");
  EXPECT_EQ(text("void gemv2T_kernel_val<int, int, float, float>"), "matmul no fp32");
}

TEST(KernelTraits, cutlass_simt_uses_no_tensor_cores) {
  EXPECT_EQ(text("void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>(Params)"), "matmul no fp32");
  EXPECT_EQ(text("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_32x6_tn_align8>(Params)"),
            "matmul yes bf16");
}

TEST(KernelTraits, attention_and_convolution_are_not_matmuls) {
  EXPECT_EQ(text("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64").substr(0, 13),
            "attention yes");
  EXPECT_EQ(
      text("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>)").substr(0, 13),
      "attention yes");
  EXPECT_EQ(text("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8_ffma"),
            "convolution no fp32");
}

TEST(KernelTraits, atens_kernels_move_data) {
  EXPECT_EQ(text("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>"),
            "pointwise no bf16");
  EXPECT_EQ(text("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>"), "reduction no fp32");
  EXPECT_EQ(text("void cublasLt::splitKreduce_kernel<32, 16, int, float>"), "reduction no fp32");
  EXPECT_EQ(text("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"),
            "normalization no fp32");
  EXPECT_EQ(text("triton_poi_fused_gelu_0"), "compiled no unknown");
  EXPECT_EQ(text("something_new"), "other no unknown");
}

TEST(DevicePeaks, the_drivers_names_find_their_device) {
  const auto name = [](std::string_view device) {
    const DevicePeaks* peaks = find_device_peaks(device);
    return std::string(peaks == nullptr ? "none" : peaks->name);
  };
  EXPECT_EQ(name("NVIDIA H200"), "H200");
  EXPECT_EQ(name("NVIDIA H100 80GB HBM3"), "H100 SXM");
  EXPECT_EQ(name("NVIDIA H100 PCIe"), "H100 PCIe");
  EXPECT_EQ(name("NVIDIA GH200 480GB"), "GH200");
  EXPECT_EQ(name("NVIDIA A100-SXM4-80GB"), "A100 SXM 80GB");
  EXPECT_EQ(name("NVIDIA A100-PCIE-40GB"), "A100 40GB");
  EXPECT_EQ(name("NVIDIA A100 80GB PCIe"), "A100 PCIe 80GB");
  EXPECT_EQ(name("NVIDIA A10G"), "A10G");
  EXPECT_EQ(name("NVIDIA L4"), "L4");
  EXPECT_EQ(name("NVIDIA L40S"), "L40S");
  EXPECT_EQ(name("Tesla T4"), "T4");
  EXPECT_EQ(name("Tesla V100-SXM2-16GB"), "V100 SXM2");
  EXPECT_EQ(name("NVIDIA GeForce RTX 4090"), "RTX 4090");
  EXPECT_EQ(name("AMD Instinct MI300X"), "MI300X");
  EXPECT_EQ(name("Some other GPU"), "none");
}

TEST(DevicePeaks, without_tensor_cores_fp32_is_the_rate) {
  const DevicePeaks& h200 = *find_device_peaks("NVIDIA H200");
  EXPECT_EQ(h200.flops_per_s(Precision::kFp32, TensorCores::kNo), 67e12);
  EXPECT_EQ(h200.flops_per_s(Precision::kTf32, TensorCores::kYes), 494.5e12);
  EXPECT_EQ(h200.flops_per_s(Precision::kBf16, TensorCores::kYes), 989.5e12);
  EXPECT_EQ(h200.flops_per_s(Precision::kUnknown, TensorCores::kYes), 0);
}

TEST(KernelTraits, kernels_of_other_libraries) {
  const auto class_of = [](std::string_view name) { return kernel_traits(name).kernel_class; };
  EXPECT_EQ(class_of("Cijk_Alik_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1"), KernelClass::kMatmul);  // hipBLASLt
  EXPECT_EQ(class_of("_ZN2ck16kernel_gemm_xdl_cshuffle"), KernelClass::kMatmul);                // Composable Kernel
  EXPECT_EQ(class_of("igemm_fwd_gtcx3_nhwc_bf16_bx0"), KernelClass::kConvolution);              // MIOpen
  EXPECT_EQ(class_of("miopenSp3AsmConv_v30_3_1_gfx9"), KernelClass::kConvolution);
  EXPECT_EQ(class_of("attn_fwd"), KernelClass::kAttention);  // Triton on ROCm
  EXPECT_EQ(class_of("gemm_kernel"), KernelClass::kMatmul);  // oneDNN
  EXPECT_EQ(class_of("gen_conv_kernel"), KernelClass::kConvolution);
  EXPECT_EQ(class_of("loop_add_multiply_fusion_3"), KernelClass::kCompiled);  // XLA
  EXPECT_EQ(class_of("gemm_fusion_dot_12"), KernelClass::kMatmul);
  EXPECT_EQ(class_of("pallas_call.7"), KernelClass::kCompiled);
  EXPECT_EQ(class_of("aclnnMm_MatMulCommon_MatMul"), KernelClass::kMatmul);  // Ascend
}

TEST(KernelTraits, matrix_units_of_other_makers) {
  for (const char* name : {"attn_fwd", "bwd_kernel_dk_dv", "bwd_kernel_fuse", "_ZN2ck16kernel_gemm_xdl_cshuffle",
                           "igemm_fwd_gtcx3_nhwc_bf16_bx0", "aclnnMm_MatMulCommon_MatMulV2"})
    EXPECT_EQ(kernel_traits(name).tensor_cores, TensorCores::kYes) << name;
  EXPECT_EQ(kernel_traits("gemm_kernel").tensor_cores, TensorCores::kUnknown);
}

// A product in fp32 was measured against four times what the matrix cores of an MI300X do of it.
TEST(DevicePeaks, matrix_cores_of_amd_take_fp32_as_it_is) {
  EXPECT_EQ(find_device_peaks("AMD Instinct MI300X")->flops_per_s(Precision::kFp32, TensorCores::kYes), 163.4e12);
  EXPECT_EQ(find_device_peaks("AMD Instinct MI250X")->flops_per_s(Precision::kFp32, TensorCores::kYes), 47.9e12);
  EXPECT_EQ(find_device_peaks("NVIDIA H200")->flops_per_s(Precision::kFp32, TensorCores::kYes), 494.5e12);
}

TEST(DevicePeaks, other_makers_are_known_by_the_names_in_traces) {
  struct Known {
    std::string_view in_trace, name;
    double bf16, bandwidth;
  };
  for (const Known& known :
       {Known{"TPU v6 Lite", "TPU v6e", 918, 1638}, Known{"TPU v5 lite", "TPU v5e", 197, 819},
        Known{"TPU v5p", "TPU v5p", 459, 2765}, Known{"TPU v4", "TPU v4", 275, 1228},
        Known{"AMD Instinct MI350X", "MI350X", 2306.9, 8000}, Known{"AMD Instinct MI300X VF", "MI300X", 1307.4, 5300},
        Known{"AMD Instinct MI250", "MI250 (one die)", 181, 1638}, Known{"NVIDIA H20", "H20", 148, 4000},
        Known{"NVIDIA GB300", "GB300", 2500, 8000}, Known{"NVIDIA B200", "B200", 2250, 7700},
        Known{"GAUDI3", "Gaudi 3", 1835, 3670},
        Known{"Intel(R) Data Center GPU Max 1550", "Max 1550 (one stack)", 419.4, 1638}}) {
    const DevicePeaks* const peaks = find_device_peaks(known.in_trace);
    ASSERT_NE(peaks, nullptr) << known.in_trace;
    EXPECT_EQ(peaks->name, known.name);
    EXPECT_EQ(peaks->bf16_tflops, known.bf16);
    EXPECT_EQ(peaks->bandwidth_gb_s, known.bandwidth);
  }
  EXPECT_EQ(find_device_peaks("NVIDIA H200")->name, "H200") << "and not an H20";
}

}  // namespace
}  // namespace firelane::analyze

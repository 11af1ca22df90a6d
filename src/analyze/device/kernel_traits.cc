#include "analyze/device/kernel_traits.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "analyze/device/device_class.h"

namespace firelane::analyze {

namespace {

bool has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

bool has_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return has(name, part); });
}

struct ClassWord {
  std::string_view word;
  KernelClass kernel_class;
};

// The first word that the name holds decides, so that "splitKreduce" is not a matmul and
// "flash_fwd_splitkv" not a reduction.
constexpr std::array kClassWords = {
    // XLA's own names come before the words that they contain: gemm_fusion_dot is a matmul, loop_reduce_fusion
    // compiled.
    ClassWord{"gemm_fusion", KernelClass::kMatmul},
    ClassWord{"_fusion", KernelClass::kCompiled},
    ClassWord{"pallas", KernelClass::kCompiled},
    ClassWord{"mosaic", KernelClass::kCompiled},
    ClassWord{"tpu_custom_call", KernelClass::kCompiled},
    ClassWord{"triton_", KernelClass::kCompiled},
    ClassWord{"multi_tensor_apply", KernelClass::kForeach},
    ClassWord{"flash_fwd", KernelClass::kAttention},
    ClassWord{"flash_bwd", KernelClass::kAttention},
    ClassWord{"flash::", KernelClass::kAttention},
    ClassWord{"fmha", KernelClass::kAttention},
    ClassWord{"sdpa", KernelClass::kAttention},
    ClassWord{"AttentionKernel", KernelClass::kAttention},
    ClassWord{"AttentionBackwardKernel", KernelClass::kAttention},
    ClassWord{"attn_fwd", KernelClass::kAttention},
    ClassWord{"attn_bwd", KernelClass::kAttention},
    ClassWord{"bwd_kernel_dk_dv", KernelClass::kAttention},  // Triton's flash attention, AMD
    ClassWord{"bwd_kernel_dq", KernelClass::kAttention},
    ClassWord{"bwd_kernel_fuse", KernelClass::kAttention},
    ClassWord{"FmhaFwd", KernelClass::kAttention},  // Composable Kernel
    ClassWord{"FmhaBwd", KernelClass::kAttention},
    ClassWord{"FlashAttention", KernelClass::kAttention},  // Ascend
    ClassWord{"splitKreduce", KernelClass::kReduction},
    ClassWord{"lean_reduction", KernelClass::kReduction},
    ClassWord{"fprop", KernelClass::kConvolution},
    ClassWord{"dgrad", KernelClass::kConvolution},
    ClassWord{"wgrad", KernelClass::kConvolution},
    ClassWord{"convolve", KernelClass::kConvolution},
    ClassWord{"conv_depthwise", KernelClass::kConvolution},
    ClassWord{"winograd", KernelClass::kConvolution},
    ClassWord{"Winograd", KernelClass::kConvolution},
    ClassWord{"igemm_", KernelClass::kConvolution},  // MIOpen
    ClassWord{"MIOpenConv", KernelClass::kConvolution},
    ClassWord{"miopenSp3AsmConv", KernelClass::kConvolution},
    ClassWord{"naive_conv", KernelClass::kConvolution},
    ClassWord{"grouped_conv", KernelClass::kConvolution},  // Composable Kernel
    ClassWord{"gen_conv", KernelClass::kConvolution},      // oneDNN
    ClassWord{"convolution", KernelClass::kConvolution},   // HLO
    ClassWord{"Conv2D", KernelClass::kConvolution},        // Ascend
    ClassWord{"implicit_gemm", KernelClass::kConvolution},
    ClassWord{"nvjet", KernelClass::kMatmul},
    ClassWord{"gemv", KernelClass::kMatmul},
    ClassWord{"gemm", KernelClass::kMatmul},
    ClassWord{"Cijk_", KernelClass::kMatmul},  // Tensile, AMD
    ClassWord{"dot_kernel", KernelClass::kMatmul},
    ClassWord{"DeviceGemm", KernelClass::kMatmul},  // Composable Kernel
    ClassWord{"MatMul", KernelClass::kMatmul},      // Ascend
    ClassWord{"matmul", KernelClass::kMatmul},
    ClassWord{"oftmax", KernelClass::kNormalization},
    ClassWord{"oftMax", KernelClass::kNormalization},
    ClassWord{"ayer_norm", KernelClass::kNormalization},
    ClassWord{"ayerNorm", KernelClass::kNormalization},
    ClassWord{"batch_norm", KernelClass::kNormalization},
    ClassWord{"bn_fw", KernelClass::kNormalization},
    ClassWord{"bn_bw", KernelClass::kNormalization},
    ClassWord{"roup_norm", KernelClass::kNormalization},
    ClassWord{"roupNorm", KernelClass::kNormalization},
    ClassWord{"rms_norm", KernelClass::kNormalization},
    ClassWord{"RowwiseMoments", KernelClass::kNormalization},
    ClassWord{"GammaBeta", KernelClass::kNormalization},
    ClassWord{"distribution_", KernelClass::kRandom},
    ClassWord{"dropout", KernelClass::kPointwise},
    ClassWord{"embedding", KernelClass::kIndexing},
    ClassWord{"EmbeddingBackward", KernelClass::kIndexing},
    ClassWord{"index_elementwise", KernelClass::kIndexing},
    ClassWord{"indexSelect", KernelClass::kIndexing},
    ClassWord{"indexing_backward", KernelClass::kIndexing},
    ClassWord{"vectorized_gather", KernelClass::kIndexing},
    ClassWord{"scatter", KernelClass::kIndexing},
    ClassWord{"CatArrayBatchedCopy", KernelClass::kIndexing},
    ClassWord{"RadixSort", KernelClass::kIndexing},
    ClassWord{"topk", KernelClass::kIndexing},
    ClassWord{"reduce_kernel", KernelClass::kReduction},
    ClassWord{"elementwise_kernel", KernelClass::kPointwise},
    ClassWord{"FillFunctor", KernelClass::kPointwise},
    ClassWord{"cunn_", KernelClass::kReduction},
};

KernelClass class_of(std::string_view name) {
  if (is_communication_name(name)) return KernelClass::kCommunication;
  const auto found =
      std::find_if(kClassWords.begin(), kClassWords.end(), [&](const ClassWord& each) { return has(name, each.word); });
  return found == kClassWords.end() ? KernelClass::kOther : found->kernel_class;
}

// cuBLAS on Hopper and later: nvjet_sm90_tst_..., older nvjet_hsh_...: letters of input, accumulator and output.
Precision nvjet_precision(std::string_view name) {
  size_t at = name.find("nvjet_") + 6;
  if (name.substr(at).starts_with("sm")) at = name.find('_', at) + 1;
  switch (at < name.size() ? name[at] : ' ') {
    case 't': return Precision::kBf16;
    case 'h': return Precision::kFp16;
    case 's': return Precision::kTf32;
    case 'q':
    case 'r': return Precision::kFp8;
    case 'd': return Precision::kFp64;
    case 'i': return Precision::kInt8;
    default: return Precision::kUnknown;
  }
}

Precision precision_in_name(std::string_view name) {
  if (has(name, "nvjet_")) return nvjet_precision(name);
  if (has_any(name, {"e4m3", "e5m2", "fp8"})) return Precision::kFp8;
  if (has_any(name, {"tf32"})) return Precision::kTf32;
  if (has_any(name, {"bf16", "bfloat16", "BFloat16"})) return Precision::kBf16;
  if (has_any(name, {"f64f64", "dgemm", "double"})) return Precision::kFp64;
  if (has_any(name, {"f16f16", "fp16", "hgemm", "h884", "h1688", "h16816", "c10::Half", "__half"})) {
    return Precision::kFp16;
  }
  if (has_any(name, {"i8i8", "imma", "igemm", "int8"})) return Precision::kInt8;
  if (has_any(name, {"f32f32", "sgemm", "_f32_", "float"})) return Precision::kFp32;
  return Precision::kUnknown;
}

TensorCores tensor_cores_in_name(std::string_view name, KernelClass kernel_class, Precision precision) {
  if (!is_matrix_class(kernel_class)) return TensorCores::kNo;
  if (has_any(name, {"simt", "ffma", "gemv", "dot_kernel", "convolve_sgemm", "winograd"})) return TensorCores::kNo;
  const bool plain_sgemm = has_any(name, {"_sgemm_", "_dgemm_"}) && !has(name, "tensorop");
  if (plain_sgemm) return TensorCores::kNo;
  // (884 and so on are the shapes of one matrix instruction.)
  if (has_any(name, {"nvjet", "tensorop", "tensor16x8", "wgmma", "hmma", "wmma", "imma", "qgmma", "utcmma", "s884",
                     "h884", "s1688", "h1688", "s16816", "h16816", "tf32", "flash", "sdpa"})) {
    return TensorCores::kYes;
  }
  if (has(name, "Cijk_") && has(name, "_MI")) return TensorCores::kYes;  // AMD's matrix instructions
  // Attention of Triton and of Composable Kernel, whose products are such instructions; MIOpen's and CK's own.
  if (has_any(name, {"attn_fwd", "attn_bwd", "bwd_kernel_d", "bwd_kernel_fuse", "FmhaFwd", "FmhaBwd", "_gtcx", "xdl",
                     "Xdl", "mfma"})) {
    return TensorCores::kYes;
  }
  if (has_any(name, {"MatMul", "Conv2D", "FlashAttention"})) return TensorCores::kYes;  // Ascend's have no other unit
  // torch's memory-efficient attention uses them from Volta on for halves, from Ampere on for fp32 too.
  if (has(name, "fmha_cutlass")) return has_any(name, {"sm80", "sm90", "f16"}) ? TensorCores::kYes : TensorCores::kNo;
  if (has_any(name, {"xmma", "cudnn", "cutlass"}) && precision != Precision::kUnknown &&
      precision != Precision::kFp32) {
    return TensorCores::kYes;
  }
  return TensorCores::kUnknown;
}

}  // namespace

std::string_view name_of(KernelClass kernel_class) {
  constexpr std::array<std::string_view, kKernelClassCount> kNames = {
      "matmul",  "convolution", "attention", "pointwise", "reduction",     "normalization",
      "foreach", "indexing",    "random",    "compiled",  "communication", "other"};
  return kNames[static_cast<size_t>(kernel_class)];
}

std::string_view name_of(TensorCores tensor_cores) {
  constexpr std::array<std::string_view, 3> kNames = {"unknown", "no", "yes"};
  return kNames[static_cast<size_t>(tensor_cores)];
}

std::string_view name_of(Precision precision) {
  constexpr std::array<std::string_view, 8> kNames = {"unknown", "fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8"};
  return kNames[static_cast<size_t>(precision)];
}

KernelTraits kernel_traits(std::string_view kernel_name) {
  KernelTraits traits{.kernel_class = class_of(kernel_name), .precision = precision_in_name(kernel_name)};
  traits.tensor_cores = tensor_cores_in_name(kernel_name, traits.kernel_class, traits.precision);
  const bool is_s1688 = has(kernel_name, "s1688") && traits.precision == Precision::kFp32;
  if (is_s1688 && traits.tensor_cores == TensorCores::kYes) traits.precision = Precision::kTf32;
  return traits;
}

Precision precision_of_type(std::string_view type) {
  if (type == "float") return Precision::kFp32;
  if (type == "c10::BFloat16") return Precision::kBf16;
  if (type == "c10::Half") return Precision::kFp16;
  if (type == "double") return Precision::kFp64;
  if (type.starts_with("c10::Float8")) return Precision::kFp8;
  if (type == "signed char" || type == "unsigned char") return Precision::kInt8;
  return Precision::kUnknown;
}

}  // namespace firelane::analyze

// What a kernel is, by its name: what it computes, in which precision, and whether on tensor cores.
//
// Names are what the libraries chose: cuBLAS (nvjet_sm90_tst_..., sm80_xmma_gemm_bf16bf16_..., ampere_sgemm_...),
// CUTLASS (cutlass_80_tensorop_..., cutlass_80_simt_...), cuDNN, FlashAttention, Triton, ATen. A name that says
// nothing gives kOther and kUnknown; the types of the op's inputs then tell the precision.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

enum class KernelClass : uint8_t {
  kMatmul,
  kConvolution,
  kAttention,      // fused attention
  kPointwise,      // one value in, one out; casts and copies by a kernel too
  kReduction,      // sums, means, norms over a dimension; the last stage of a split matmul
  kNormalization,  // layer, batch, group, RMS norm; softmax
  kForeach,        // many tensors at once: fused optimizers
  kIndexing,       // embedding, gather, scatter, sort, concatenation
  kRandom,
  kCompiled,  // made by a compiler that fuses: Triton code of torch.compile
  kCommunication,
  kOther,
};
inline constexpr size_t kKernelClassCount = 12;
std::string_view name_of(KernelClass kernel_class);  // "matmul", ...

enum class TensorCores : uint8_t { kUnknown, kNo, kYes };
std::string_view name_of(TensorCores tensor_cores);  // "unknown", "no", "yes"

enum class Precision : uint8_t { kUnknown, kFp64, kFp32, kTf32, kBf16, kFp16, kFp8, kInt8 };
std::string_view name_of(Precision precision);  // "unknown", "fp64", "fp32", ...

struct KernelTraits {
  KernelClass kernel_class = KernelClass::kOther;
  TensorCores tensor_cores = TensorCores::kUnknown;
  Precision precision = Precision::kUnknown;  // of the inputs, as far as the name says
};

KernelTraits kernel_traits(std::string_view kernel_name);

// The same for a model's names, each looked at once: names are long and repeat thousands of times.
class TraitsOfNames {
 public:
  explicit TraitsOfNames(const Model& model) : model_(model), place_(model.strings.size(), kUnknown) {}
  const KernelTraits& of(StringId name) {
    uint32_t& place = place_[static_cast<uint32_t>(name)];
    if (place == kUnknown) {
      place = static_cast<uint32_t>(traits_.size());
      traits_.push_back(kernel_traits(model_.text(name)));
    }
    return traits_[place];
  }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;
  const Model& model_;
  std::vector<uint32_t> place_;      // by name, in traits_
  std::deque<KernelTraits> traits_;  // which stay where they are
};

// "float" is fp32, "c10::BFloat16" bf16, ...
Precision precision_of_type(std::string_view type);

// Classes whose arithmetic tensor cores can do.
inline bool is_matrix_class(KernelClass kernel_class) {
  return kernel_class == KernelClass::kMatmul || kernel_class == KernelClass::kConvolution ||
         kernel_class == KernelClass::kAttention;
}

// Classes that move data and compute little: a compiler can join them with their neighbours.
inline bool is_fusible_class(KernelClass kernel_class) {
  return kernel_class == KernelClass::kPointwise || kernel_class == KernelClass::kReduction ||
         kernel_class == KernelClass::kNormalization;
}

}  // namespace firelane::analyze

// What a GPU could do at best: the makers' numbers, by the name that traces give.
//
// Dense rates (no sparsity), at boost clock, with fp32 accumulation where the maker gives both. 0 = the
// device has no unit for it, or the maker does not say. Real programs reach 60 to 85% of them.
#pragma once

#include <string_view>
#include <vector>

#include "analyze/device/kernel_traits.h"
#include "model/model.h"

namespace firelane::analyze {

struct DevicePeaks {
  std::string_view name;          // as in our table: "H200"
  double fp32_tflops = 0;         // without tensor cores
  double tf32_tflops = 0;         // tensor cores, fp32 inputs
  double half_tflops = 0;         // tensor cores, fp16
  double bf16_tflops = 0;         // tensor cores, bf16
  double fp8_tflops = 0;          // tensor cores, fp8
  double fp64_tflops = 0;         // the faster of vector and tensor units
  double bandwidth_gb_s = 0;      // device memory
  double fp32_matrix_tflops = 0;  // matrix units that take fp32 as it is (AMD); 0: they make tf32 of it

  // FLOP/s of that kind of arithmetic; 0 when not known. Without tensor cores everything but fp64 runs at
  // the rate of fp32, as torch's kernels compute in fp32.
  double flops_per_s(Precision precision, TensorCores tensor_cores) const;
};

// By the name that the driver gives: "NVIDIA H200", "NVIDIA A100-SXM4-80GB". Null when not in the table.
const DevicePeaks* find_device_peaks(std::string_view device_name);

// Those of the trace's device with that index (its only one when the index is not known); null when not known.
const DevicePeaks* peaks_of(const Model& model, int32_t device);

}  // namespace firelane::analyze

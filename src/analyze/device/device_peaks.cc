#include "analyze/device/device_peaks.h"

#include <algorithm>
#include <array>

#include "model/occupancy.h"

namespace firelane::analyze {

namespace {

struct Entry {
  std::array<std::string_view, 2> words;  // all must be in the device's name
  DevicePeaks peaks;
};

// Where each row comes from stands above it: the title of what the maker published, and what was done with its numbers.
// "Sparse halved" = the maker gives rates with sparsity, the dense ones are half of them. The first row whose words fit
// wins, so special names stand before general ones.
//                     words                name             fp32   tf32   fp16   bf16   fp8    fp64   GB/s   fp32 by
//                     matrix units
constexpr std::array kTable = {
    // NVIDIA GB300 NVL72, product page: 72 GPUs; divided by 72, sparse halved.
    Entry{{"GB300", ""}, {"GB300", 80, 1250, 2500, 2500, 5000, 1.4, 8000}},
    // NVIDIA HGX platform, table of HGX B300: 8 GPUs; divided by 8, sparse halved.
    Entry{{"B300", ""}, {"B300", 75, 1125, 2250, 2250, 4500, 1.3, 8000}},
    // NVIDIA GB200 NVL72 datasheet, column of the superchip: 2 GPUs; divided by 2, sparse halved.
    Entry{{"GB200", ""}, {"GB200", 80, 1250, 2500, 2500, 5000, 40, 8000}},
    // NVIDIA HGX platform, table of HGX B200: 8 GPUs (62 TB/s together); divided by 8, sparse halved.
    Entry{{"B200", ""}, {"B200", 75, 1125, 2250, 2250, 4500, 37, 7700}},
    // NVIDIA's figures for the HGX H20, as the press gave them: no public datasheet. Dense rates, 4.0 TB/s.
    Entry{{"H20", ""}, {"H20", 44, 74, 148, 148, 296, 1, 4000}},
    // NVIDIA H200 Tensor Core GPU datasheet, columns NVL and SXM: sparse halved, 4.8 TB/s. NVIDIA GH200 Grace Hopper
    // Superchip datasheet: the GPU is that of the H100 SXM, with 96 GB HBM3 (4 TB/s) or 144 GB HBM3e (4.9 TB/s).
    Entry{{"H200", "NVL"}, {"H200 NVL", 60, 417.5, 835.5, 835.5, 1670.5, 60, 4800}},
    Entry{{"GH200", "144G"}, {"GH200 144GB", 67, 494.5, 989.5, 989.5, 1979, 67, 4900}},
    Entry{{"GH200", ""}, {"GH200", 67, 494.5, 989.5, 989.5, 1979, 67, 4000}},
    Entry{{"H200", ""}, {"H200", 67, 494.5, 989.5, 989.5, 1979, 67, 4800}},
    // NVIDIA H100 Tensor Core GPU datasheet, columns PCIe (first edition), NVL and SXM: sparse halved.
    Entry{{"H100", "PCIe"}, {"H100 PCIe", 51, 378, 756.5, 756.5, 1513, 51, 2039}},
    Entry{{"H100", "NVL"}, {"H100 NVL", 60, 417.5, 835.5, 835.5, 1670.5, 60, 3938}},
    Entry{{"H100", ""}, {"H100 SXM", 67, 494.5, 989.5, 989.5, 1979, 67, 3352}},
    // NVIDIA A100 Tensor Core GPU datasheet: dense rates as given; 40 GB from the first edition.
    Entry{{"A100", "80GB PCIe"}, {"A100 PCIe 80GB", 19.5, 156, 312, 312, 0, 19.5, 1935}},
    Entry{{"A100", "80GB"}, {"A100 SXM 80GB", 19.5, 156, 312, 312, 0, 19.5, 2039}},
    Entry{{"A100", ""}, {"A100 40GB", 19.5, 156, 312, 312, 0, 19.5, 1555}},
    // NVIDIA A10G, A10, A30 and A40 datasheets: dense rates as given; fp64 of A10 and A40 is 1/64 of fp32.
    Entry{{"A10G", ""}, {"A10G", 31.5, 35, 70, 70, 0, 0.5, 600}},
    Entry{{"A10", ""}, {"A10", 31.2, 62.5, 125, 125, 0, 0.5, 600}},
    Entry{{"A30", ""}, {"A30", 10.3, 82, 165, 165, 0, 10.3, 933}},
    Entry{{"A40", ""}, {"A40", 37.4, 74.8, 149.7, 149.7, 0, 0.6, 696}},
    // NVIDIA L40S, L40 and L4 datasheets: dense rates as given (L4: sparse halved); fp64 is 1/64 of fp32.
    Entry{{"L40S", ""}, {"L40S", 91.6, 183, 362, 362, 733, 1.4, 864}},
    Entry{{"L40", ""}, {"L40", 90.5, 90.5, 181, 181, 362, 1.4, 864}},
    Entry{{"L4", ""}, {"L4", 30.3, 60, 121, 121, 242.5, 0.5, 300}},
    // NVIDIA T4 and Tesla V100 datasheets; NVIDIA Tesla P100 datasheet (SXM2). T4: fp64 is 1/32 of fp32.
    Entry{{"T4", ""}, {"T4", 8.1, 0, 65, 0, 0, 0.25, 320}},
    Entry{{"V100", "PCIE"}, {"V100 PCIe", 14, 0, 112, 0, 0, 7, 900}},
    Entry{{"V100", ""}, {"V100 SXM2", 15.7, 0, 125, 0, 0, 7.8, 900}},
    Entry{{"P100", ""}, {"P100", 10.6, 0, 0, 0, 0, 5.3, 732}},
    // NVIDIA RTX 6000 Ada, RTX A6000, RTX PRO 6000 Blackwell and RTX A5000 datasheets: sparse halved; fp64 is 1/64 of
    // fp32.
    Entry{{"RTX 6000 Ada", ""}, {"RTX 6000 Ada", 91.1, 182.1, 364.2, 364.2, 728.5, 1.4, 960}},
    Entry{{"RTX A6000", ""}, {"RTX A6000", 38.7, 77.4, 154.8, 154.8, 0, 0.6, 768}},
    Entry{{"RTX PRO 6000", ""}, {"RTX PRO 6000 Blackwell", 125, 251.9, 503.8, 503.8, 1007.6, 1.9, 1792}},
    Entry{{"RTX A5000", ""}, {"RTX A5000", 27.8, 55.6, 111.1, 111.1, 0, 0.4, 768}},
    // NVIDIA RTX Blackwell GPU Architecture white paper (RTX 50), NVIDIA Ada GPU Architecture white paper (RTX 40) and
    // NVIDIA Ampere GA102 GPU Architecture white paper (RTX 30): dense rates with fp32 accumulation, as given.
    Entry{{"RTX 5080", ""}, {"RTX 5080", 56.3, 56.3, 112.6, 112.6, 225.1, 0.9, 960}},
    Entry{{"RTX 5090", ""}, {"RTX 5090", 104.8, 104.8, 209.5, 209.5, 419, 1.6, 1792}},
    Entry{{"RTX 4090", ""}, {"RTX 4090", 82.6, 82.6, 165.2, 165.2, 330.3, 1.3, 1008}},
    Entry{{"RTX 4080", ""}, {"RTX 4080", 48.7, 48.7, 97.5, 97.5, 194.9, 0.8, 717}},
    Entry{{"RTX 3080", ""}, {"RTX 3080", 29.8, 29.8, 59.5, 59.5, 0, 0.5, 760}},
    Entry{{"RTX 3090", ""}, {"RTX 3090", 35.6, 35.6, 71, 71, 0, 0.6, 936}},
    // AMD Instinct MI355X and MI350X GPU datasheets: dense matrix rates as given. CDNA 4 has no TF32.
    Entry{{"MI355X", ""}, {"MI355X", 157.3, 0, 2516.6, 2516.6, 5033.2, 78.6, 8000, 157.3}},
    Entry{{"MI350X", ""}, {"MI350X", 144.2, 0, 2306.9, 2306.9, 4613.7, 72.1, 8000, 144.2}},
    // AMD Instinct MI325X, MI300X and MI300A datasheets: dense matrix rates as given. ROCm documentation, "MI300 series
    // microarchitecture": the same for 304 compute units at 2.1 GHz (2048 operations a clock of fp16); MI300A has 228.
    Entry{{"MI325X", ""}, {"MI325X", 163.4, 653.7, 1307.4, 1307.4, 2614.9, 163.4, 6000, 163.4}},
    Entry{{"MI300X", ""}, {"MI300X", 163.4, 653.7, 1307.4, 1307.4, 2614.9, 163.4, 5300, 163.4}},
    Entry{{"MI300A", ""}, {"MI300A", 122.6, 490.3, 980.6, 980.6, 1961.2, 122.6, 5300, 122.6}},
    // AMD Instinct MI250X, MI250 and MI210 datasheets; ROCm documentation, "MI250 microarchitecture": halved for MI250X
    // and MI250, whose two dies torch calls two devices.
    Entry{{"MI250X", ""}, {"MI250X (one die)", 23.9, 0, 191.5, 191.5, 0, 47.9, 1638, 47.9}},
    Entry{{"MI250", ""}, {"MI250 (one die)", 22.6, 0, 181, 181, 0, 45.3, 1638, 45.3}},
    Entry{{"MI210", ""}, {"MI210", 22.6, 0, 181, 181, 0, 45.3, 1638, 45.3}},
    // Google Cloud, "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e" and "TPU7x (Ironwood)": peak compute and HBM bandwidth of
    // one
    // chip; fp8 of v5p, v6e and TPU7x from the table of TPU7x. The matrix units take bf16; fp32 is several passes of
    // them.
    Entry{{"TPU v4", ""}, {"TPU v4", 0, 0, 0, 275, 0, 0, 1228}},
    Entry{{"TPU v5 lite", ""}, {"TPU v5e", 0, 0, 0, 197, 0, 0, 819}},
    Entry{{"TPU v5e", ""}, {"TPU v5e", 0, 0, 0, 197, 0, 0, 819}},
    Entry{{"TPU v5", ""}, {"TPU v5p", 0, 0, 0, 459, 459, 0, 2765}},
    Entry{{"TPU v6", ""}, {"TPU v6e", 0, 0, 0, 918, 918, 0, 1638}},
    Entry{{"TPU7x", ""}, {"TPU7x", 0, 0, 0, 2307, 4614, 0, 7380}},
    // Intel, "Intel Gaudi 3 AI Accelerator: Architected for Gen AI Training and Inference" (Hot Chips 2024): matrix
    // rates and
    // HBM bandwidth of both; fp8 of Gaudi 2 from the Gaudi 2 white paper.
    Entry{{"GAUDI3", ""}, {"Gaudi 3", 0, 0, 0, 1835, 1835, 0, 3670}},
    Entry{{"GAUDI2", ""}, {"Gaudi 2", 0, 0, 0, 432, 865, 0, 2460}},
    // Intel at Hot Chips 34 (2 stacks: 52 TFLOP/s fp64 and fp32, 419 tf32, 839 bf16, 3.2 TB/s): Max 1550, whose two
    // stacks torch calls two devices, halved. Max 1100: its 56 cores at 1.55 GHz, by the operations a clock of the
    // Xe-HPC core (4096 of bf16, 2048 of tf32).
    Entry{{"GPU Max 1550", ""}, {"Max 1550 (one stack)", 26.2, 209.7, 419.4, 419.4, 0, 26.2, 1638}},
    Entry{{"GPU Max 1100", ""}, {"Max 1100", 22.2, 178, 356, 356, 0, 22.2, 1229}},
};

bool is_word_end(std::string_view name, size_t at) {
  return at >= name.size() || !(name[at] >= '0' && name[at] <= '9');
}

// "L4" is in "NVIDIA L4", not in "NVIDIA L40S".
bool has_word(std::string_view name, std::string_view word) {
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const bool starts = at == 0 || !((name[at - 1] >= 'A' && name[at - 1] <= 'Z') || name[at - 1] == '_');
    if (starts && is_word_end(name, at + word.size())) return true;
  }
  return word.empty();
}

}  // namespace

double DevicePeaks::flops_per_s(Precision precision, TensorCores tensor_cores) const {
  constexpr double kTera = 1e12;
  if (precision == Precision::kFp64) return fp64_tflops * kTera;
  if (tensor_cores != TensorCores::kYes) return precision == Precision::kUnknown ? 0 : fp32_tflops * kTera;
  switch (precision) {
    case Precision::kFp32: return (fp32_matrix_tflops > 0 ? fp32_matrix_tflops : tf32_tflops) * kTera;
    case Precision::kTf32: return tf32_tflops * kTera;
    case Precision::kBf16: return bf16_tflops * kTera;
    case Precision::kFp16: return half_tflops * kTera;
    case Precision::kFp8: return fp8_tflops * kTera;
    default: return 0;
  }
}

const DevicePeaks* find_device_peaks(std::string_view device_name) {
  const auto found = std::find_if(kTable.begin(), kTable.end(), [&](const Entry& entry) {
    return has_word(device_name, entry.words[0]) && device_name.find(entry.words[1]) != std::string_view::npos;
  });
  return found == kTable.end() ? nullptr : &found->peaks;
}

const DevicePeaks* peaks_of(const Model& model, int32_t device) {
  const auto& devices = model.info.devices;
  if (device < 0 && devices.size() == 1) return find_device_peaks(devices.front().name);
  const DeviceProperties* const found = find_device(model.info, device);
  return found == nullptr ? nullptr : find_device_peaks(found->name);
}

}  // namespace firelane::analyze

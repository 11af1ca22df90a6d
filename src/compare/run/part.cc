#include "compare/run/run.h"

namespace firelane::compare {

namespace {

struct PartWords {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array<PartWords, kPartCount> kWords = {{
    {"waiting for input", "the loader's __next__"},
    {"host between operators", "Python and other code of the program, outside of operators"},
    {"host in operators", "dispatching operators, and computing where there is no device"},
    {"launching", "in calls that queue device work"},
    {"other runtime calls", "in runtime and driver calls that neither launch nor wait"},
    {"waiting calls", "in calls that wait for the device, longer than the device works"},
    {"allocating", "in cudaMalloc, cudaFree and similar calls"},
    {"garbage collection", "Python's collector"},
    {"loading kernels", "loading or compiling modules"},
    {"the recorder", "the profiler's own work, as far as the trace marks it"},
    {"matmul kernels", "matrix products"},
    {"convolution kernels", "convolutions"},
    {"attention kernels", "fused attention"},
    {"pointwise kernels", "elementwise kernels, casts and copies done by a kernel"},
    {"reduction kernels", "sums, means, norms over a dimension"},
    {"normalization kernels", "layer, batch, group and RMS norm, softmax"},
    {"foreach kernels", "many tensors in one kernel: fused optimizers"},
    {"indexing kernels", "embedding, gather, scatter, sort, concatenation"},
    {"random kernels", "dropout masks, random numbers"},
    {"compiled kernels", "fused by torch.compile"},
    {"other kernels", "kernels whose name does not tell what they do"},
    {"communication", "collectives without overlap"},
    {"copies", "memcpys and memsets without overlap"},
    {"launch latency", "from a launch to its start, between queued kernels, from the end of work to the host"},
    {"unexplained waits", "gaps that the trace does not explain"},
    {"uneven steps", "median step minus average step"},
}};

}  // namespace

std::string_view name_of(Part part) { return kWords[static_cast<size_t>(part)].name; }
std::string_view meaning_of(Part part) { return kWords[static_cast<size_t>(part)].meaning; }
bool is_kernels(Part part) { return part >= Part::kMatmul && part <= Part::kOtherKernels; }
bool is_host(Part part) { return part <= Part::kRecorder; }

}  // namespace firelane::compare

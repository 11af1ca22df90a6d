#include "analyze/verdict/bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace firelane::analyze {

namespace {

constexpr double kDominant = 0.5;
constexpr double kMargin = 0.15;
constexpr double kKnown = 0.5;  // of the critical path: with less, what is missing may be the limit

// Computing and memory are one against the others: both mean that the device is the limit. A host without any cost
// would still leave the device's work, so overhead is the limit only as far as the device idles.
Limit decide(const Bound& bound) {
  const auto share = [&](Limit limit) { return bound.shares[static_cast<size_t>(limit)]; };
  const double overhead = std::min(share(Limit::kOverhead), 1 - bound.device_busy);
  const double device = share(Limit::kCompute) + share(Limit::kMemory);
  const Limit on_device = share(Limit::kCompute) >= share(Limit::kMemory) ? Limit::kCompute : Limit::kMemory;
  const std::array<std::pair<double, Limit>, 4> sides = {{{overhead, Limit::kOverhead},
                                                          {device, on_device},
                                                          {share(Limit::kInput), Limit::kInput},
                                                          {share(Limit::kCommunication), Limit::kCommunication}}};
  const auto largest = std::max_element(sides.begin(), sides.end());
  const double known = std::accumulate(bound.shares.begin(), bound.shares.end(), 0.0);
  if (largest->first <= 0 || known < kKnown) return Limit::kUnknown;
  double next = 0;
  for (auto side = sides.begin(); side != sides.end(); ++side) {
    if (side != largest) next = std::max(next, side->first);
  }
  return largest->first < kDominant || largest->first - next < kMargin ? Limit::kMixed : largest->second;
}

}  // namespace

std::string_view name_of(Limit limit) {
  static constexpr std::array<std::string_view, 7> kNames = {"overhead",      "compute", "memory", "input",
                                                             "communication", "mixed",   "unknown"};
  return kNames[static_cast<size_t>(limit)];
}

std::string_view label_of(Limit limit) {
  static constexpr std::array<std::string_view, 7> kLabels = {
      "overhead-bound", "compute-bound", "memory-bound", "input-bound", "communication-bound", "mixed", "unknown"};
  return kLabels[static_cast<size_t>(limit)];
}

std::string_view reason_for(Limit limit, bool has_device_work) {
  static constexpr std::array<std::string_view, 7> kOnDevice = {"the host cannot feed the device fast enough",
                                                                "the device is busy multiplying matrices",
                                                                "the device is busy moving data through its memory",
                                                                "the program waits for its next batch",
                                                                "the devices wait for each other",
                                                                "no single bottleneck",
                                                                "this trace does not show what limits the program"};
  if (has_device_work) return kOnDevice[static_cast<size_t>(limit)];
  switch (limit) {
    case Limit::kOverhead: return "Python and dispatch overhead dominate; the math itself is short";
    case Limit::kCompute: return "the CPU is busy in operators";
    case Limit::kMemory: return "the CPU is busy moving data";
    case Limit::kCommunication: return "the processes wait for each other";
    default: return kOnDevice[static_cast<size_t>(limit)];
  }
}

bool is_matrix_kernel(std::string_view name) {
  for (const std::string_view part : {"gemm", "Gemm", "GEMM", "nvjet", "cutlass", "xmma", "wgmma", "conv", "Conv",
                                      "wgrad", "dgrad", "fprop", "flash", "fmha", "attention", "winograd", "Cijk_"}) {
    if (name.find(part) != std::string_view::npos) {
      // Convolution is computing; converting a type is not.
      const bool converts = (part == "conv" || part == "Conv") && name.find("onvert") != std::string_view::npos;
      if (!converts) return true;
    }
  }
  return false;
}

// Devices that run whole compiled functions as one piece of work, under names of the program: nothing in such a name
// says what limits it.
bool has_opaque_work(Accelerator accelerator) {
  return accelerator == Accelerator::kMtia || accelerator == Accelerator::kPrivateUse1;
}

std::vector<Limit> work_limits(const Model& model, const Roofline& roofline) {
  const DeviceSlices& slices = model.device_slices;
  std::vector<uint8_t> matrix(model.strings.size(), 2);  // by name; 2: not asked yet
  std::vector<Limit> limits(slices.size(), Limit::kMemory);
  const bool opaque = has_opaque_work(model.info.accelerator);
  for (Row row = 0; row < slices.size(); ++row) {
    if (slices.kind[row] != DeviceKind::kKernel) continue;
    const uint32_t of = roofline.row_of_work[row];
    const KernelBound roof = of == kNoRow ? KernelBound::kUnknown : roofline.rows[of].roof;
    uint8_t& is_matrix = matrix[static_cast<uint32_t>(slices.name[row])];
    if (is_matrix == 2) is_matrix = is_matrix_kernel(model.text(slices.name[row])) ? 1 : 0;
    // FLOPs belong to the op's matrix kernels; what else it launches (casts, bias, split-k sums) moves data.
    const bool is_measured = of != kNoRow && roofline.rows[of].is_measured;
    const bool computes =
        is_measured ? roofline.rows[of].bound == KernelBound::kCompute : is_matrix == 1 && roof != KernelBound::kMemory;
    const bool is_opaque = is_matrix != 1 && !is_measured && roof == KernelBound::kUnknown && opaque;
    if (computes) limits[row] = Limit::kCompute;
    if (is_opaque) limits[row] = Limit::kUnknown;
  }
  return limits;
}

IntervalSet device_busy(const Graph& graph, const Replay& played) {
  std::vector<Interval> work;
  for (NodeId node = 0; node < graph.nodes.size(); ++node) {
    if (!graph.nodes[node].is_device()) continue;
    work.push_back({played.time_ns[node], played.time_ns[node] + played.duration_ns[node]});
  }
  return IntervalSet(std::move(work));
}

Bound BoundJudge::of(const CriticalPath& path, const IntervalSet& busy, int64_t start_ns, int64_t end_ns) const {
  Bound bound;
  if (end_ns <= start_ns) return bound;
  std::array<int64_t, kLimitCount> times{};
  const auto add = [&](Limit limit, int64_t ns) { times[static_cast<size_t>(limit)] += ns; };
  auto piece = std::partition_point(path.pieces.begin(), path.pieces.end(),
                                    [&](const PathPiece& each) { return each.end_ns <= start_ns; });
  for (; piece != path.pieces.end() && piece->start_ns < end_ns; ++piece) {
    const int64_t part = std::min(end_ns, piece->end_ns) - std::max(start_ns, piece->start_ns);
    switch (piece->path_class) {
      case PathClass::kHost:
      case PathClass::kLatency: add(Limit::kOverhead, part); break;
      case PathClass::kInput: add(Limit::kInput, part); break;
      case PathClass::kCommunication: add(Limit::kCommunication, part); break;
      case PathClass::kCopy: add(Limit::kMemory, part); break;
      case PathClass::kCompute:
        if (limits_[piece->row] != Limit::kUnknown) add(limits_[piece->row], part);
        break;
      case PathClass::kUnknown: break;
    }
  }
  const auto computing = std::llround(computing_share_ * static_cast<double>(times[0]));
  add(Limit::kOverhead, -computing);
  add(Limit::kCompute, computing);
  for (size_t i = 0; i < kLimitCount; ++i) {
    bound.shares[i] = static_cast<double>(times[i]) / static_cast<double>(end_ns - start_ns);
  }
  bound.device_busy = static_cast<double>(busy.covered_ns(start_ns, end_ns)) / static_cast<double>(end_ns - start_ns);
  bound.limit = decide(bound);
  return bound;
}

}  // namespace firelane::analyze

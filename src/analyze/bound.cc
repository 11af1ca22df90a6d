#include "analyze/bound.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "analyze/device_class.h"
#include "analyze/device_work.h"
#include "analyze/dispatch.h"
#include "analyze/host_calls.h"

namespace firelane {

namespace {

constexpr double kDominant = 0.5;
constexpr double kMargin = 0.15;
// Host and device time this close to each other: neither limits alone.
constexpr double kClose = 1.25;

// Computing and memory are one against the others: both mean that the device is the limit.
Limit decide(const std::array<double, kLimitCount>& shares) {
  const auto share = [&](Limit limit) { return shares[static_cast<size_t>(limit)]; };
  const double device = share(Limit::kCompute) + share(Limit::kMemory);
  const Limit on_device = share(Limit::kCompute) >= share(Limit::kMemory) ? Limit::kCompute : Limit::kMemory;
  const std::array<std::pair<double, Limit>, 4> sides = {{{share(Limit::kOverhead), Limit::kOverhead},
                                                          {device, on_device},
                                                          {share(Limit::kInput), Limit::kInput},
                                                          {share(Limit::kCommunication), Limit::kCommunication}}};
  const auto largest = std::max_element(sides.begin(), sides.end());
  if (largest->first <= 0) return Limit::kUnknown;
  double next = 0;
  for (auto side = sides.begin(); side != sides.end(); ++side) {
    if (side != largest) next = std::max(next, side->first);
  }
  return largest->first < kDominant || largest->first - next < kMargin ? Limit::kMixed : largest->second;
}

struct Sums {
  GroupBound group;
  int64_t matrix_ns = 0;
  int64_t ops = 0;  // these and those inside of them, when there is no device; else 0
};

Limit limit_of(const Sums& sum) {
  const GroupBound& group = sum.group;
  if (group.device_ns == 0) {
    if (sum.ops > 0 && group.host_ns > 2 * kDispatchNs * sum.ops) return Limit::kCompute;
    return group.host_ns > 0 ? Limit::kOverhead : Limit::kUnknown;
  }
  const auto host = static_cast<double>(group.host_ns);
  const auto device = static_cast<double>(group.device_ns);
  if (host > device * kClose) return Limit::kOverhead;
  if (host * kClose >= device) return Limit::kMixed;
  return sum.matrix_ns * 2 >= group.device_ns ? Limit::kCompute : Limit::kMemory;
}

std::vector<GroupBound> finish(std::unordered_map<uint32_t, Sums>& sums) {
  std::vector<GroupBound> rows;
  for (auto& [name, sum] : sums) {
    sum.group.limit = limit_of(sum);
    rows.push_back(sum.group);
  }
  std::sort(rows.begin(), rows.end(), [](const GroupBound& a, const GroupBound& b) {
    const int64_t a_ns = std::max(a.host_ns, a.device_ns);
    const int64_t b_ns = std::max(b.host_ns, b.device_ns);
    return a_ns != b_ns ? a_ns > b_ns : a.name < b.name;
  });
  return rows;
}

bool inside(const Interval& window, int64_t time_ns) { return time_ns >= window.start_ns && time_ns < window.end_ns; }

// Time of calls that wait for the device, per outermost slice: given to `waited(call row)`.
template <typename Fn>
void each_wait(const Model& model, const Interval& window, const Fn& fn) {
  CallKinds kinds(model);
  for (const Row row : model.call_details.slice) {
    if (row == kNoRow || !inside(window, model.host_slices.start_ns[row])) continue;
    if (is_blocking(kinds.of(row))) fn(row);
  }
}

class MatrixNames {
 public:
  explicit MatrixNames(const Model& model) : model_(model), known_(model.strings.size(), 2) {}
  bool of(StringId name) {
    uint8_t& known = known_[static_cast<uint32_t>(name)];
    if (known == 2) known = is_matrix_kernel(model_.text(name)) ? 1 : 0;
    return known == 1;
  }

 private:
  const Model& model_;
  std::vector<uint8_t> known_;
};

}  // namespace

std::string_view name_of(Limit limit) {
  static constexpr std::array<std::string_view, 7> kNames = {"overhead",      "compute", "memory", "input",
                                                             "communication", "mixed",   "unknown"};
  return kNames[static_cast<size_t>(limit)];
}

std::string_view words_for(Limit limit) {
  static constexpr std::array<std::string_view, 7> kWords = {
      "overhead-bound: the host cannot feed the device fast enough",
      "compute-bound: the device is busy multiplying matrices",
      "memory-bound: the device is busy moving data through its memory",
      "input-bound: the program waits for its next batch",
      "communication-bound: the devices wait for each other",
      "mixed: nothing alone limits it",
      "not known from this trace"};
  return kWords[static_cast<size_t>(limit)];
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

Bound bound_of(const Model& model, const CriticalPath& path, int64_t start_ns, int64_t end_ns, double computing_share) {
  Bound bound;
  if (end_ns <= start_ns) return bound;
  std::array<int64_t, kLimitCount> times{};
  const auto add = [&](Limit limit, int64_t ns) { times[static_cast<size_t>(limit)] += ns; };
  MatrixNames matrix(model);
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
        add(matrix.of(model.device_slices.name[piece->row]) ? Limit::kCompute : Limit::kMemory, part);
        break;
      case PathClass::kUnknown: break;
    }
  }
  const auto computing = std::llround(computing_share * static_cast<double>(times[0]));
  add(Limit::kOverhead, -computing);
  add(Limit::kCompute, computing);
  for (size_t i = 0; i < kLimitCount; ++i) {
    bound.shares[i] = static_cast<double>(times[i]) / static_cast<double>(end_ns - start_ns);
  }
  bound.limit = decide(bound.shares);
  return bound;
}

std::vector<GroupBound> operator_bounds(const Model& model, const Interval& window) {
  const HostSlices& slices = model.host_slices;
  const auto& kinds = model.device_slices.kind;
  const bool on_cpu = std::none_of(kinds.begin(), kinds.end(), is_device_work);
  std::vector<Row> outermost(slices.size(), kNoRow);  // the outermost op a slice lies in
  std::unordered_map<uint32_t, Sums> sums;
  for (Row row = 0; row < slices.size(); ++row) {
    const Row parent = slices.parent[row];
    outermost[row] = parent == kNoRow ? kNoRow : outermost[parent];
    if (on_cpu && slices.kind[row] == HostKind::kOp) {
      const Row outer = outermost[row] == kNoRow ? row : outermost[row];
      if (inside(window, slices.start_ns[outer])) ++sums[static_cast<uint32_t>(slices.name[outer])].ops;
    }
    if (outermost[row] != kNoRow || slices.kind[row] != HostKind::kOp) continue;
    outermost[row] = row;
    if (!inside(window, slices.start_ns[row])) continue;
    Sums& sum = sums[static_cast<uint32_t>(slices.name[row])];
    sum.group.name = slices.name[row];
    ++sum.group.calls;
    sum.group.host_ns += slices.duration_ns[row];
  }
  each_wait(model, window, [&](Row call) {
    const Row op = outermost[call];
    if (op != kNoRow && inside(window, slices.start_ns[op])) {
      sums[static_cast<uint32_t>(slices.name[op])].group.host_ns -= slices.duration_ns[call];
    }
  });
  MatrixNames matrix(model);
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || !is_device_work(model.device_slices.kind[row])) continue;
    const Row op = outermost[launch];
    if (op == kNoRow || !inside(window, slices.start_ns[op])) continue;
    Sums& sum = sums[static_cast<uint32_t>(slices.name[op])];
    sum.group.device_ns += model.device_slices.duration_ns[row];
    if (matrix.of(model.device_slices.name[row])) sum.matrix_ns += model.device_slices.duration_ns[row];
  }
  return finish(sums);
}

std::vector<GroupBound> phase_bounds(const Model& model, const HostTime& host, const Interval& window) {
  std::unordered_map<uint32_t, Sums> sums;
  if (host.chains.empty()) return {};
  const HostSlices& slices = model.host_slices;
  struct Phase {
    int64_t start_ns, end_ns;
    StringId name;
  };
  std::vector<Phase> phases;  // not nested: the outermost below the step
  const auto lane = static_cast<size_t>(host.chains[0].lanes[0]);
  int64_t until = INT64_MIN;
  for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
    if (slices.kind[row] != HostKind::kAnnotation || !inside(window, slices.start_ns[row])) continue;
    if (slices.start_ns[row] < until || model.text(slices.name[row]).starts_with("ProfilerStep#")) continue;
    until = slices.end_ns(row);
    phases.push_back({slices.start_ns[row], until, slices.name[row]});
    Sums& sum = sums[static_cast<uint32_t>(slices.name[row])];
    sum.group.name = slices.name[row];
    ++sum.group.calls;
    const ActivityTimes times = host.chains[0].times_in(slices.start_ns[row], until);
    sum.group.host_ns += slices.duration_ns[row] - times[static_cast<size_t>(Activity::kSync)];
  }
  MatrixNames matrix(model);
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || !is_device_work(model.device_slices.kind[row])) continue;
    const int64_t at = slices.start_ns[launch];
    const auto after =
        std::partition_point(phases.begin(), phases.end(), [&](const Phase& phase) { return phase.start_ns <= at; });
    if (after == phases.begin() || std::prev(after)->end_ns <= at) continue;
    Sums& sum = sums[static_cast<uint32_t>(std::prev(after)->name)];
    sum.group.device_ns += model.device_slices.duration_ns[row];
    if (matrix.of(model.device_slices.name[row])) sum.matrix_ns += model.device_slices.duration_ns[row];
  }
  for (auto& [name, sum] : sums) {
    if (model.text(sum.group.name).starts_with("enumerate(Data")) sum.group.device_ns = 0;
  }
  std::vector<GroupBound> rows = finish(sums);
  for (GroupBound& row : rows) {
    if (model.text(row.name).starts_with("enumerate(Data")) row.limit = Limit::kInput;
  }
  return rows;
}

}  // namespace firelane

#include "analyze/compute/roofline.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "analyze/compute/measured_rows.h"
#include "analyze/device/device_work.h"
#include "analyze/ops/flops.h"
#include "analyze/ops/op_tensors.h"
#include "analyze/steps/find_steps.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/run_sort.h"

namespace firelane::analyze {

namespace {

// A call shorter than this that reaches less than a quarter of its roof is bound by latency.
constexpr double kShortNs = 10'000;
constexpr double kFarFromRoof = 0.25;

struct RowKey {
  StringId op, dims, types;
  bool operator==(const RowKey&) const = default;
};
struct RowHash {
  size_t operator()(const RowKey& key) const {
    return mix_hash(static_cast<uint64_t>(key.op) << 32 | static_cast<uint64_t>(key.dims),
                    static_cast<uint64_t>(key.types));
  }
};

// One call of an op: its device work together.
struct Call {
  int64_t device_ns = 0;
  int64_t kernels = 0;
  int64_t longest_ns = -1;
  Row longest = kNoRow;  // device slice
  Row first_start = kNoRow;
  int64_t host_copies = 0;  // of `kernels`: copies between host and device
  int64_t host_copy_bytes = 0;
  bool is_host_copy() const { return host_copies > 0 && host_copies == kernels; }
};

// For such a copy the device's memory is only one side, which the op's inputs do not tell.
void add_host_copy(const Model& model, Row row, Call& call) {
  if (model.device_slices.kind[row] != DeviceKind::kCopy || model.device_slices.detail[row] == kNoRow) return;
  const Row detail = model.device_slices.detail[row];
  const CopyDirection direction = model.copy_details.direction[detail];
  if (direction != CopyDirection::kHtoD && direction != CopyDirection::kDtoH) return;
  ++call.host_copies;
  const int64_t bytes = model.copy_details.bytes[detail];
  call.host_copy_bytes =
      bytes == kNoNumber || call.host_copy_bytes == kNoNumber ? kNoNumber : call.host_copy_bytes + bytes;
}

Row owner_of(const Model& model, FlopsTable& flops, Row op, KernelClass kernel_class) {
  if (!is_matrix_class(kernel_class)) return op;
  for (Row row = op; row != kNoRow && model.host_slices.kind[row] == HostKind::kOp;
       row = model.host_slices.parent[row]) {
    if (flops.of(row).op_flops > 0) return row;
  }
  return op;
}

// Arithmetic of a call: what the kernel's name says, else what its inputs are.
Precision call_precision(const KernelTraits& traits, const std::vector<OpTensor>& inputs) {
  Precision of_inputs = Precision::kUnknown;
  for (const OpTensor& tensor : inputs) {
    if (tensor.precision != Precision::kUnknown) of_inputs = tensor.precision;
    if (of_inputs != Precision::kUnknown && tensor.dims.size() > 1) break;
  }
  // cuDNN's attention says f16 for both halves; the inputs know better. tf32 only the name can say.
  const bool name_knows = traits.precision == Precision::kTf32 || of_inputs == Precision::kUnknown;
  return name_knows ? traits.precision : of_inputs;
}

void decide_bound(const DevicePeaks* peaks, RooflineRow& row) {
  if (peaks == nullptr) return;
  const double peak = peaks->flops_per_s(row.precision, row.tensor_cores);
  const double compute_ns = row.flops > 0 && peak > 0 ? static_cast<double>(row.flops) / peak * 1e9 : -1;
  const double memory_ns =
      row.bytes != kNoNumber && row.bytes > 0 ? static_cast<double>(row.bytes) / peaks->bandwidth_gb_s : -1;
  row.roof_ns = std::max(compute_ns, memory_ns);
  if (row.roof_ns < 0 || row.device_ns == 0) return;
  row.bound = row.roof = compute_ns >= memory_ns ? KernelBound::kCompute : KernelBound::kMemory;
  const auto time_ns = static_cast<double>(row.device_ns);
  const bool is_short = time_ns / static_cast<double>(std::max<int64_t>(row.calls, 1)) < kShortNs;
  if (is_short && row.roof_ns < kFarFromRoof * time_ns) row.bound = KernelBound::kLatency;
}

std::string_view main_device(const Model& model, int32_t device) {
  for (const DeviceProperties& each : model.info.devices) {
    if (each.id == device || model.info.devices.size() == 1) return each.name;
  }
  return {};
}

int32_t busiest_device(const Model& model) {
  std::unordered_map<int32_t, int64_t> work;
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    if (is_device_work(model.device_slices.kind[row])) {
      work[model.device_slices.device[row]] += model.device_slices.duration_ns[row];
    }
  }
  int32_t best = -1;
  int64_t most = -1;
  for (const auto& [device, ns] : work) {
    if (ns > most || (ns == most && device < best)) {
      best = device;
      most = ns;
    }
  }
  return best;
}

// FLOPs where their device work starts, in time at peak.
class Utilization {
 public:
  Utilization(const Model& model, const Steps& steps, const DevicePeaks* peaks)
      : windows_(steps), peaks_(peaks), sums_(steps.size() + 1) {
    const Interval span = counted_span(model);
    whole_ns_ = span.end_ns - span.start_ns;
  }
  void add(int64_t start_ns, int64_t flops, Precision precision, TensorCores tensor_cores) {
    if (flops <= 0) return;
    const double peak = peaks_ == nullptr ? 0 : peaks_->flops_per_s(precision, tensor_cores);
    const double ns = peak > 0 ? static_cast<double>(flops) / peak * 1e9 : 0;
    for_each_sum(start_ns, [&](Sum& sum) {
      sum.flops += flops;
      sum.at_peak_ns += ns;
    });
  }
  // Work whose FLOPs are what `add` was told, if anything, and work of which nobody knows whether it has any.
  void add_known(int64_t start_ns) {
    for_each_sum(start_ns, [](Sum& sum) { sum.has_known = true; });
  }
  void add_unknown(int64_t start_ns) {
    for_each_sum(start_ns, [](Sum& sum) { sum.has_unknown = true; });
  }
  void finish(Roofline& out) const {
    for (size_t i = 0; i < windows_.size(); ++i) {
      out.steps.push_back(row_of(sums_[i], windows_.number[i], windows_.duration_ns[i]));
    }
    out.whole = row_of(sums_.back(), kNoNumber, whole_ns_);
  }

 private:
  struct Sum {
    int64_t flops = 0;
    double at_peak_ns = 0;
    bool has_known = false;
    bool has_unknown = false;
    bool is_known() const { return flops > 0 || has_known || !has_unknown; }
  };

  // For the whole trace, and for the step that contains the time.
  template <typename Change>
  void for_each_sum(int64_t start_ns, const Change& change) {
    change(sums_.back());
    const auto& starts = windows_.start_ns;
    const auto after = std::upper_bound(starts.begin(), starts.end(), start_ns) - starts.begin();
    if (after == 0) return;
    const auto step = static_cast<size_t>(after - 1);
    if (start_ns < starts[step] + windows_.duration_ns[step]) change(sums_[step]);
  }
  UtilizationRow row_of(const Sum& sum, int64_t step, int64_t duration_ns) const {
    UtilizationRow row{.step = step, .duration_ns = duration_ns};
    if (!sum.is_known()) return row;
    row.flops = sum.flops;
    if (peaks_ != nullptr && duration_ns > 0)
      row.mfu_percent = 100.0 * sum.at_peak_ns / static_cast<double>(duration_ns);
    return row;
  }

  const Steps& windows_;
  const DevicePeaks* peaks_;
  std::vector<Sum> sums_;  // per step; the last is the whole trace
  int64_t whole_ns_ = 0;
};

struct Calls {
  std::vector<std::pair<Row, Call>> calls;  // op and its device work, in order of the ops' rows
  std::vector<uint32_t> of_work;            // by device slice: index in `calls`; kNoRow: none
};

// Device work by the op call that owns it.
Calls calls_of(const Model& model, FlopsTable& flops, TraitsOfNames& traits, Roofline& out) {
  const DeviceSlices& slices = model.device_slices;
  Calls out_calls{.calls = {}, .of_work = std::vector<uint32_t>(slices.size(), kNoRow)};
  std::vector<uint32_t> call_of(model.host_slices.size(), kNoRow);  // by op: index in `calls`
  for (Row row = 0; row < slices.size(); ++row) {
    if (!is_device_work(slices.kind[row]) || !is_counted(model, row)) continue;
    const int64_t ns = counted_ns(model, row);
    out.work_ns += ns;
    const bool is_kernel = slices.kind[row] == DeviceKind::kKernel;
    const KernelTraits& kernel = traits.of(slices.name[row]);
    if (is_kernel && is_matrix_class(kernel.kernel_class)) {
      out.matrix_ns += ns;
      if (kernel.tensor_cores == TensorCores::kYes) out.tensor_core_ns += ns;
      if (kernel.tensor_cores == TensorCores::kUnknown) out.tensor_core_unknown_ns += ns;
    }
    if (slices.op[row] == kNoRow) {
      out.without_op_ns += ns;
      continue;
    }
    const Row owner = owner_of(model, flops, slices.op[row], kernel.kernel_class);
    if (call_of[owner] == kNoRow) {
      call_of[owner] = static_cast<uint32_t>(out_calls.calls.size());
      out_calls.calls.push_back({owner, {}});
    }
    out_calls.of_work[row] = owner;
    Call& call = out_calls.calls[call_of[owner]].second;
    call.device_ns += ns;
    ++call.kernels;
    add_host_copy(model, row, call);
    if (ns > call.longest_ns) {
      call.longest_ns = ns;
      call.longest = row;
    }
    if (call.first_start == kNoRow || slices.start_ns[row] < slices.start_ns[call.first_start]) call.first_start = row;
  }
  std::vector<std::pair<Row, Call>>& sorted = out_calls.calls;
  run_sort(sorted.data(), sorted.size(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (uint32_t i = 0; i < sorted.size(); ++i) call_of[sorted[i].first] = i;
  for (uint32_t& of : out_calls.of_work) {
    if (of != kNoRow) of = call_of[of];
  }
  return out_calls;
}

// Gathers the calls of an op with the same inputs in one row of `out`.
class RooflineRowMaker {
 public:
  RooflineRowMaker(const Model& model, TraitsOfNames& traits, Roofline& out)
      : model_(model), traits_(traits), out_(out) {}

  // Returns the number of the row that the call went to.
  uint32_t add(Row op, const Call& call, int64_t call_flops) {
    const RowKey key = key_of(op);
    ++(key.dims == kNoString ? out_.ops_without_shapes : out_.ops_with_shapes);
    const auto [found, is_new] = row_of_.try_emplace(key, static_cast<uint32_t>(out_.rows.size()));
    if (is_new) begin_row(op, key, call, call_flops);
    RooflineRow& row = out_.rows[found->second];
    Extremes& extremes = extremes_[found->second];
    ++row.calls;
    row.kernels += call.kernels;
    row.device_ns += call.device_ns;
    row.flops += call_flops;
    const int64_t bytes = call.is_host_copy() ? call.host_copy_bytes : extremes.call_bytes;
    extremes.bytes = bytes == kNoNumber || extremes.bytes == kNoNumber ? kNoNumber : extremes.bytes + bytes;
    if (call.device_ns > extremes.longest_call_ns) {
      extremes.longest_call_ns = call.device_ns;
      row.example = op;
    }
    if (call.longest_ns > extremes.longest_kernel_ns) {
      extremes.longest_kernel_ns = call.longest_ns;
      row.kernel = model_.device_slices.name[call.longest];
    }
    return found->second;
  }

  void finish() {
    int64_t rows_ns = out_.without_op_ns;
    for (size_t i = 0; i < out_.rows.size(); ++i) {
      RooflineRow& row = out_.rows[i];
      row.bytes = extremes_[i].bytes;
      decide_bound(out_.peaks, row);
      rows_ns += row.device_ns;
    }
    FL_CHECK(rows_ns == out_.work_ns, "roofline: rows and work without an op must add up to all device work");
  }

 private:
  struct Extremes {
    int64_t call_bytes = kNoNumber;  // by the inputs, the same for all calls
    int64_t bytes = 0;               // of all calls
    int64_t longest_call_ns = -1;
    int64_t longest_kernel_ns = -1;
  };

  RowKey key_of(Row op) const {
    const Row detail = model_.op_detail(op);
    const bool has_detail = model_.host_slices.kind[op] == HostKind::kOp && detail != kNoRow;
    return {model_.host_slices.name[op], has_detail ? model_.op_details.input_dims[detail] : kNoString,
            has_detail ? model_.op_details.input_types[detail] : kNoString};
  }

  void begin_row(Row op, const RowKey& key, const Call& call, int64_t call_flops) {
    const bool is_kernel = model_.device_slices.kind[call.longest] == DeviceKind::kKernel;
    const KernelTraits kernel = is_kernel ? traits_.of(model_.device_slices.name[call.longest]) : KernelTraits{};
    const std::vector<OpTensor> inputs = input_tensors(model_, op);
    out_.rows.push_back({.op = key.op,
                         .dims = key.dims,
                         .types = key.types,
                         .kernel_class = kernel.kernel_class,
                         .tensor_cores = kernel.tensor_cores,
                         .precision = call_precision(kernel, inputs),
                         .aligned = kernel.kernel_class != KernelClass::kMatmul || are_aligned(inputs)});
    extremes_.push_back({.call_bytes = op_bytes(model_.text(key.op), kernel.kernel_class, inputs, call_flops)});
  }

  const Model& model_;
  TraitsOfNames& traits_;
  Roofline& out_;
  std::unordered_map<RowKey, uint32_t, RowHash> row_of_;
  std::vector<Extremes> extremes_;  // by row
};

// The longest first. Returns where each row went.
std::vector<uint32_t> sort_rows(const Model& model, std::vector<RooflineRow>& rows) {
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
    const RooflineRow& a = rows[x];
    const RooflineRow& b = rows[y];
    if (a.device_ns != b.device_ns) return a.device_ns > b.device_ns;
    if (a.op != b.op) return model.text(a.op) < model.text(b.op);
    return model.text(a.dims) != model.text(b.dims) ? model.text(a.dims) < model.text(b.dims) : x < y;
  });
  std::vector<RooflineRow> sorted;
  std::vector<uint32_t> place(order.size());
  for (const uint32_t from : order) {
    place[from] = static_cast<uint32_t>(sorted.size());
    sorted.push_back(rows[from]);
  }
  rows = std::move(sorted);
  return place;
}

}  // namespace

namespace {

// Ops of XLA have no host op; the compiler counted their FLOPs and bytes. A row for each kernel name of those.
class CompiledRows {
 public:
  CompiledRows(const Model& model, Roofline& out) : model_(model), out_(out) {}

  void add_all(Utilization& utilization, std::vector<std::pair<Row, uint32_t>>& placed) {
    const DeviceSlices& slices = model_.device_slices;
    const KernelDetails& details = model_.kernel_details;
    for (Row detail = 0; detail < details.size(); ++detail) {
      const Row slice = details.slice[detail];
      const bool has_counts = details.flops[detail] != kNoNumber || details.bytes_accessed[detail] != kNoNumber;
      if (!has_counts || slice == kNoRow || slices.op[slice] != kNoRow || !is_counted(model_, slice)) continue;
      const auto [found, is_new] = row_of_.try_emplace(slices.name[slice], static_cast<uint32_t>(out_.rows.size()));
      if (is_new) begin_row(slices.name[slice], detail);
      RooflineRow& row = out_.rows[found->second];
      const int64_t ns = counted_ns(model_, slice);
      ++row.calls;
      ++row.kernels;
      row.device_ns += ns;
      out_.without_op_ns -= ns;
      if (is_matrix_class(row.kernel_class)) {
        out_.matrix_ns += ns;
        out_.tensor_core_ns += ns;
      }
      const int64_t flops = std::max<int64_t>(0, details.flops[detail]);
      row.flops += flops;
      if (details.bytes_accessed[detail] > 0)
        row.bytes = (row.bytes == kNoNumber ? 0 : row.bytes) + details.bytes_accessed[detail];
      utilization.add(slices.start_ns[slice], flops, row.precision, row.tensor_cores);
      placed.emplace_back(slice, found->second);
    }
    for (const auto& [name, row] : row_of_) decide_bound(out_.peaks, out_.rows[row]);
  }

 private:
  // TPUs multiply matrices in bf16; on other devices the name of the kernel says what it is.
  void begin_row(StringId name, Row detail) {
    RooflineRow row{.op = name, .kernel = name};
    const std::string_view category = model_.text(model_.kernel_details.op_category[detail]);
    const KernelTraits traits = kernel_traits(model_.text(name));
    row.kernel_class = traits.kernel_class;
    row.precision = traits.precision;
    row.tensor_cores = traits.tensor_cores;
    const bool is_product = category.find("convolution") != std::string_view::npos || category.starts_with("dot");
    if (model_.info.accelerator == Accelerator::kTpu) {
      row.kernel_class = is_product ? KernelClass::kMatmul : KernelClass::kCompiled;
      row.precision = Precision::kBf16;
      row.tensor_cores = is_product ? TensorCores::kYes : TensorCores::kNo;
    }
    out_.rows.push_back(row);
  }

  const Model& model_;
  Roofline& out_;
  std::unordered_map<StringId, uint32_t> row_of_;
};

// Kernels of no op, and of ops without inputs.
void add_unknown_work(const Model& model, const Roofline& out, const Calls& calls,
                      const std::vector<uint32_t>& row_of_call, Utilization& utilization) {
  const DeviceSlices& slices = model.device_slices;
  for (Row row = 0; row < slices.size(); ++row) {
    if (slices.kind[row] != DeviceKind::kKernel || !is_counted(model, row)) continue;
    const uint32_t call = calls.of_work[row];
    const bool has_inputs = call != kNoRow && out.rows[row_of_call[call]].dims != kNoString;
    if (!has_inputs) utilization.add_unknown(slices.start_ns[row]);
  }
}

}  // namespace

std::string_view name_of(KernelBound bound) {
  switch (bound) {
    case KernelBound::kCompute: return "compute";
    case KernelBound::kMemory: return "memory";
    case KernelBound::kLatency: return "latency";
    default: return "unknown";
  }
}

Roofline roofline(const StudiedTrace& trace) { return roofline_of(trace.model(), trace_steps(trace)); }

Roofline roofline_of(const Model& model, const Steps& steps) {
  Roofline out;
  const int32_t device = busiest_device(model);
  out.peaks = peaks_of(model, device);
  out.device_name = main_device(model, device);
  FlopsTable flops(model);
  TraitsOfNames traits(model);
  const Calls calls = calls_of(model, flops, traits, out);
  RooflineRowMaker rows(model, traits, out);
  Utilization utilization(model, steps, out.peaks);
  std::vector<uint32_t> row_of_call;
  for (const auto& [op, call] : calls.calls) {
    const int64_t call_flops = flops.of(op).op_flops;
    row_of_call.push_back(rows.add(op, call, call_flops));
    const RooflineRow& row = out.rows[row_of_call.back()];
    const int64_t start_ns = model.device_slices.start_ns[call.first_start];
    utilization.add(start_ns, call_flops, row.precision, row.tensor_cores);
    if (row.dims != kNoString) utilization.add_known(start_ns);
  }
  rows.finish();
  std::vector<std::pair<Row, uint32_t>> compiled;  // device slice and row
  CompiledRows(model, out).add_all(utilization, compiled);
  add_unknown_work(model, out, calls, row_of_call, utilization);
  utilization.finish(out);
  const std::vector<uint32_t> place = sort_rows(model, out.rows);
  out.row_of_work = calls.of_work;
  for (uint32_t& row : out.row_of_work) {
    if (row != kNoRow) row = place[row_of_call[row]];
  }
  for (const auto& [slice, row] : compiled) out.row_of_work[slice] = place[row];
  if (model.counter_samples.size() > 0) measure_rows(model, out);
  return out;
}

}  // namespace firelane::analyze

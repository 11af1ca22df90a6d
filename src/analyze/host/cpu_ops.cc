#include "analyze/host/cpu_ops.h"

#include <algorithm>
#include <unordered_map>

#include "analyze/ops/op_tensors.h"

namespace firelane::analyze {

namespace {

struct NamedClass {
  std::string_view name;  // without "aten::" and a last "_"
  KernelClass op_class;
};

constexpr KernelClass kPointwise = KernelClass::kPointwise;
constexpr KernelClass kReduction = KernelClass::kReduction;
constexpr KernelClass kNormalization = KernelClass::kNormalization;
constexpr KernelClass kMatmul = KernelClass::kMatmul;

constexpr NamedClass kOpClasses[] = {
    {"add", kPointwise},
    {"sub", kPointwise},
    {"rsub", kPointwise},
    {"mul", kPointwise},
    {"div", kPointwise},
    {"neg", kPointwise},
    {"abs", kPointwise},
    {"exp", kPointwise},
    {"log", kPointwise},
    {"pow", kPointwise},
    {"square", kPointwise},
    {"sqrt", kPointwise},
    {"rsqrt", kPointwise},
    {"reciprocal", kPointwise},
    {"tanh", kPointwise},
    {"sigmoid", kPointwise},
    {"relu", kPointwise},
    {"gelu", kPointwise},
    {"silu", kPointwise},
    {"elu", kPointwise},
    {"leaky_relu", kPointwise},
    {"hardtanh", kPointwise},
    {"softplus", kPointwise},
    {"sin", kPointwise},
    {"cos", kPointwise},
    {"erf", kPointwise},
    {"clamp", kPointwise},
    {"clamp_min", kPointwise},
    {"clamp_max", kPointwise},
    {"where", kPointwise},
    {"masked_fill", kPointwise},
    {"lerp", kPointwise},
    {"addcmul", kPointwise},
    {"addcdiv", kPointwise},
    {"maximum", kPointwise},
    {"minimum", kPointwise},
    {"threshold_backward", kPointwise},
    {"tanh_backward", kPointwise},
    {"sigmoid_backward", kPointwise},
    {"gelu_backward", kPointwise},
    {"silu_backward", kPointwise},
    {"native_dropout", kPointwise},
    {"native_dropout_backward", kPointwise},
    {"sum", kReduction},
    {"mean", kReduction},
    {"var", kReduction},
    {"amax", kReduction},
    {"norm", kReduction},
    {"linalg_vector_norm", kReduction},
    {"softmax", kNormalization},
    {"_softmax", kNormalization},
    {"log_softmax", kNormalization},
    {"_softmax_backward_data", kNormalization},
    {"_log_softmax_backward_data", kNormalization},
    {"layer_norm", kNormalization},
    {"native_layer_norm_backward", kNormalization},
    {"rms_norm", kNormalization},
    {"batch_norm", kNormalization},
    {"group_norm", kNormalization},
    {"mm", kMatmul},
    {"bmm", kMatmul},
    {"addmm", kMatmul},
    {"baddbmm", kMatmul},
    {"matmul", kMatmul},
    {"linear", kMatmul},
    {"einsum", kMatmul},
    {"scaled_dot_product_attention", KernelClass::kAttention},
    {"conv1d", KernelClass::kConvolution},
    {"conv2d", KernelClass::kConvolution},
    {"conv3d", KernelClass::kConvolution},
    {"convolution_backward", KernelClass::kConvolution},
};

constexpr std::string_view kViews[] = {
    "view",         "_unsafe_view", "reshape_as", "t",         "transpose", "permute",    "expand", "expand_as",
    "as_strided",   "slice",        "select",     "unsqueeze", "squeeze",   "detach",     "alias",  "_reshape_alias",
    "chunk",        "split",        "unbind",     "flatten",   "numpy_T",   "is_nonzero", "empty",  "empty_like",
    "resolve_conj", "resolve_neg"};

std::string_view bare(std::string_view name) {
  if (name.starts_with("aten::")) name.remove_prefix(6);
  if (name.size() > 1 && name.ends_with('_')) name.remove_suffix(1);
  return name;
}

int64_t largest_input(const Model& model, Row op) {
  int64_t elements = 0;
  for (const OpTensor& tensor : input_tensors(model, op)) elements = std::max(elements, tensor.elements);
  return elements;
}

bool in_window(const Interval& window, int64_t time_ns) {
  return time_ns >= window.start_ns && time_ns < window.end_ns;
}

}  // namespace

KernelClass op_class(std::string_view op_name) {
  const std::string_view name = bare(op_name);
  const auto* const found = std::find_if(std::begin(kOpClasses), std::end(kOpClasses),
                                         [&](const NamedClass& each) { return each.name == name; });
  return found == std::end(kOpClasses) ? KernelClass::kOther : found->op_class;
}

bool is_view_op(std::string_view op_name) {
  return std::find(std::begin(kViews), std::end(kViews), bare(op_name)) != std::end(kViews);
}

std::vector<CpuOp> outermost_ops(const Model& model, const HostChain& chain, const Interval& window) {
  struct Kind {
    bool is_wanted = false;
    KernelClass op_class = KernelClass::kOther;
  };
  std::unordered_map<uint32_t, Kind> kinds;  // by name
  std::vector<CpuOp> ops;
  const HostSlices& slices = model.host_slices;
  const auto is_aten = [&](Row row) {
    return slices.kind[row] == HostKind::kOp && model.text(slices.name[row]).starts_with("aten::");
  };
  each_outermost(model, chain, is_aten, [&](Row row) {
    if (!in_window(window, slices.start_ns[row])) return;
    const std::string_view name = model.text(slices.name[row]);
    const auto [kind, is_new] = kinds.try_emplace(static_cast<uint32_t>(slices.name[row]));
    if (is_new) kind->second = {!is_view_op(name), op_class(name)};
    if (kind->second.is_wanted) ops.push_back({row, kind->second.op_class, largest_input(model, row)});
  });
  std::stable_sort(ops.begin(), ops.end(),
                   [&](const CpuOp& a, const CpuOp& b) { return slices.start_ns[a.row] < slices.start_ns[b.row]; });
  return ops;
}

std::vector<std::vector<CpuOp>> fusible_chains(const Model& model, std::span<const CpuOp> ops) {
  std::vector<std::vector<CpuOp>> chains;
  std::vector<CpuOp> run;
  const auto flush = [&] {
    if (run.size() > 1) chains.push_back(run);
    run.clear();
  };
  int64_t rows = 0;  // of what a reduction in the run has made; 0: it has none, or the next op will tell
  bool reduces = false;
  for (const CpuOp& op : ops) {
    if (!is_fusible_class(op.op_class) || op.elements <= 1) {
      flush();
      continue;
    }
    const bool on_thread = !run.empty() && model.host_slices.lane[run.back().row] == model.host_slices.lane[op.row];
    const int64_t whole = run.empty() ? 0 : run.front().elements;
    // A mean or a sum of each row, what is computed from it, and what goes over the rows again with it: a norm.
    const bool is_of_rows =
        on_thread && reduces && op.elements < whole && whole % op.elements == 0 && (rows == 0 || rows == op.elements);
    if (!is_of_rows && !(on_thread && op.elements == whole)) {
      flush();
      reduces = false;
      rows = 0;
    }
    if (is_of_rows) rows = op.elements;
    run.push_back(op);
    reduces = reduces || op.op_class == KernelClass::kReduction;
  }
  flush();
  return chains;
}

}  // namespace firelane::analyze

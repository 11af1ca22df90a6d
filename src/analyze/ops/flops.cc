#include "analyze/ops/flops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "analyze/ops/op_inputs.h"
#include "base/hash.h"

namespace firelane::analyze {

namespace {

// A product of sizes: negative sizes and overflow make it 0, which means "not known".
class Product {
 public:
  Product& times(int64_t factor) {
    if (factor < 0 || __builtin_mul_overflow(value_, factor, &value_)) value_ = 0;
    return *this;
  }
  Product& times(std::span<const int64_t> factors) {
    for (const int64_t factor : factors) times(factor);
    return *this;
  }
  int64_t value() const { return value_; }

 private:
  int64_t value_ = 1;
};

struct Inputs {
  std::vector<Dims> dims;
  std::vector<std::string> types;
  std::vector<std::string> concrete;

  bool has(size_t count) const { return dims.size() >= count; }
  // A scalar has no shape and neither has a tensor of no dimensions; the type tells them apart.
  bool is_tensor(size_t i) const {
    if (i >= dims.size()) return false;
    return i >= types.size() ||
           (!types[i].empty() && types[i] != "Scalar" && types[i] != "ScalarList" && types[i] != "TensorList");
  }
  std::optional<Dims> numbers(size_t i) const {
    return i < concrete.size() ? parse_int_list(concrete[i]) : std::nullopt;
  }
};

// [.., m, k] x [.., k, n] with the batch dimensions in front of both, as torch counts:
// the size of the first less its inner (and batch) dimension, times the size of the second.
int64_t gemm(const Dims& a, const Dims& b, bool batched) {
  if (a.empty() || a.back() <= 0 || (batched && a.front() <= 0)) return 0;
  const int64_t rows = Product().times(a).value() / a.back() / (batched ? a.front() : 1);
  return Product().times(2).times(rows).times(b).value();
}

int64_t matmul(const Dims& a, const Dims& b) {
  if (a.empty() || b.empty()) return 0;
  const int64_t k = a.back();
  const int64_t m = a.size() > 1 ? a[a.size() - 2] : 1;
  const int64_t n = b.size() > 1 ? b.back() : 1;
  Product flops;
  flops.times(2).times(m).times(k).times(n);
  const size_t batch_a = a.size() > 2 ? a.size() - 2 : 0;
  const size_t batch_b = b.size() > 2 ? b.size() - 2 : 0;
  for (size_t i = 0; i < std::max(batch_a, batch_b); ++i) {  // from the right, broadcasting
    const int64_t da = i < batch_a ? a[batch_a - 1 - i] : 1;
    const int64_t db = i < batch_b ? b[batch_b - 1 - i] : 1;
    flops.times(std::max(da, db));
  }
  return flops.value();
}

// input [.., k] x weight [n, k].
int64_t linear(const Dims& input, const Dims& weight) {
  return input.empty() || weight.empty() ? 0 : Product().times(2).times(input).times(weight.front()).value();
}

// Where the arguments of a convolution stand in its schema; -1 = it has none.
struct ConvolutionSchema {
  std::string_view name;
  int stride, padding, dilation;
  int transposed;  // -1: never, -2: always, else the argument's place
};
constexpr std::array kConvolutions = {
    ConvolutionSchema{"aten::conv1d", 3, 4, 5, -1},
    ConvolutionSchema{"aten::conv2d", 3, 4, 5, -1},
    ConvolutionSchema{"aten::conv3d", 3, 4, 5, -1},
    ConvolutionSchema{"aten::convolution", 3, 4, 5, 6},
    ConvolutionSchema{"aten::_convolution", 3, 4, 5, 6},
    ConvolutionSchema{"aten::convolution_overrideable", 3, 4, 5, 6},
    ConvolutionSchema{"aten::mkldnn_convolution", 4, 3, 5, -1},
    ConvolutionSchema{"aten::cudnn_convolution", 3, 2, 4, -1},
    ConvolutionSchema{"aten::miopen_convolution", 4, 3, 5, -1},
    ConvolutionSchema{"aten::_conv_depthwise2d", 4, 5, 6, -1},
    ConvolutionSchema{"aten::_slow_conv2d_forward", 4, 5, -1, -1},
    ConvolutionSchema{"aten::conv_transpose1d", 3, 4, 7, -2},
    ConvolutionSchema{"aten::conv_transpose2d", 3, 4, 7, -2},
    ConvolutionSchema{"aten::conv_transpose3d", 3, 4, 7, -2},
    ConvolutionSchema{"aten::cudnn_convolution_transpose", 4, 2, 5, -2},
};

// 2 x batch x places x weight: every weight is used once per place of the output (per place
// of the input when transposed). Groups are in the weight's shape already.
int64_t convolution(const Inputs& in, const ConvolutionSchema& schema) {
  if (!in.has(2)) return 0;
  const Dims& input = in.dims[0];
  const Dims& weight = in.dims[1];
  if (weight.size() < 3 || (input.size() != weight.size() && input.size() + 1 != weight.size())) return 0;
  const size_t rank = weight.size() - 2;
  const std::span<const int64_t> spatial(input.data() + (input.size() - rank), rank);
  Product flops;
  flops.times(2).times(input.size() == weight.size() ? input[0] : 1).times(weight);
  bool transposed = schema.transposed == -2;
  if (schema.transposed >= 0) {
    const auto flag = in.numbers(static_cast<size_t>(schema.transposed));
    if (!flag || flag->size() != 1) return 0;
    transposed = flag->front() != 0;
  }
  if (transposed) return flops.times(spatial).value();
  const auto argument = [&](int place, int64_t otherwise) -> std::optional<Dims> {
    if (place < 0) return Dims(rank, otherwise);
    std::optional<Dims> numbers = in.numbers(static_cast<size_t>(place));
    if (numbers && numbers->size() == 1) numbers->resize(rank, numbers->front());
    return numbers && numbers->size() == rank ? numbers : std::nullopt;
  };
  const std::optional<Dims> stride = argument(schema.stride, 1);
  const std::optional<Dims> padding = argument(schema.padding, 0);
  const std::optional<Dims> dilation = argument(schema.dilation, 1);
  if (!stride || !padding || !dilation) return 0;
  for (size_t d = 0; d < rank; ++d) {
    constexpr int64_t kSane = int64_t{1} << 30;  // sizes and arguments beyond it come from damaged traces
    for (const int64_t number : {(*stride)[d], (*padding)[d], (*dilation)[d], weight[d + 2], spatial[d]})
      if (number < 0 || number > kSane) return 0;
    if ((*stride)[d] == 0) return 0;
    const int64_t reach = spatial[d] + 2 * (*padding)[d] - (*dilation)[d] * (weight[d + 2] - 1) - 1;
    flops.times(reach < 0 ? 0 : reach / (*stride)[d] + 1);
  }
  return flops.value();
}

// aten::convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
// transposed, output_padding, groups, output_mask): as much as the forward for each of the
// gradients of input and weight that is asked for.
int64_t convolution_backward(const Inputs& in) {
  if (!in.has(3)) return 0;
  const auto transposed = in.numbers(7);
  const auto mask = in.numbers(10);
  const Dims& places = transposed && transposed->size() == 1 && transposed->front() != 0 ? in.dims[1] : in.dims[0];
  const Dims& weight = in.dims[2];
  if (weight.size() < 3 || places.size() + 1 < weight.size()) return 0;
  const size_t rank = weight.size() - 2;
  const int64_t batch = places.size() == weight.size() ? places[0] : 1;
  const int64_t gradients = mask && mask->size() == 3 ? (*mask)[0] + (*mask)[1] : 2;
  return Product()
      .times(2 * gradients)
      .times(batch)
      .times(std::span(places).subspan(places.size() - rank))
      .times(weight)
      .value();
}

struct AttentionSchema {
  std::string_view name;
  size_t query;       // place of the query; key and value follow
  bool heads_second;  // [batch, heads, length, size], else [batch, length, heads, size]
  bool backward;
};
constexpr std::array kAttentions = {
    AttentionSchema{"aten::scaled_dot_product_attention", 0, true, false},
    AttentionSchema{"aten::_scaled_dot_product_flash_attention", 0, true, false},
    AttentionSchema{"aten::_scaled_dot_product_flash_attention_for_cpu", 0, true, false},
    AttentionSchema{"aten::_scaled_dot_product_efficient_attention", 0, true, false},
    AttentionSchema{"aten::_scaled_dot_product_cudnn_attention", 0, true, false},
    AttentionSchema{"aten::_scaled_dot_product_fused_attention_overrideable", 0, true, false},
    AttentionSchema{"aten::_flash_attention_forward", 0, false, false},
    AttentionSchema{"aten::_efficient_attention_forward", 0, false, false},
    AttentionSchema{"aten::_cudnn_attention_forward", 0, true, false},
    AttentionSchema{"aten::_scaled_dot_product_flash_attention_backward", 1, true, true},
    AttentionSchema{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", 1, true, true},
    AttentionSchema{"aten::_scaled_dot_product_efficient_attention_backward", 1, true, true},
    AttentionSchema{"aten::_scaled_dot_product_cudnn_attention_backward", 1, true, true},
    AttentionSchema{"aten::_scaled_dot_product_fused_attention_overrideable_backward", 1, true, true},
    AttentionSchema{"aten::_flash_attention_backward", 1, false, true},
    AttentionSchema{"aten::_efficient_attention_backward", 1, false, true},
};

// Forward: Q K^T and P V. Backward: the scores again, dV, dP, dQ and dK. Masks and causality
// are not subtracted, as in torch.utils.flop_counter.
int64_t attention(const Inputs& in, const AttentionSchema& schema) {
  if (!in.has(schema.query + 3)) return 0;
  const Dims& q = in.dims[schema.query];
  const Dims& k = in.dims[schema.query + 1];
  const Dims& v = in.dims[schema.query + 2];
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) return 0;
  const size_t length = schema.heads_second ? 2 : 1;
  const size_t heads = schema.heads_second ? 1 : 2;
  const int64_t size_qk = q[3];
  const int64_t size_v = v[3];
  if (size_qk < 0 || size_v < 0 || size_qk > INT32_MAX || size_v > INT32_MAX) return 0;
  return Product()
      .times(2)
      .times(q[0])
      .times(q[heads])
      .times(q[length])
      .times(k[length])
      .times(schema.backward ? 3 * size_qk + 2 * size_v : size_qk + size_v)
      .value();
}

enum class Formula : uint8_t { kGemm, kBatchedGemm, kElementwise, kMatmul, kLinear };
struct SimpleSchema {
  std::string_view name;
  Formula formula;
  size_t first;   // place of the first tensor
  bool by_torch;  // torch counts it too
};
constexpr std::array kSimple = {
    SimpleSchema{"aten::mm", Formula::kGemm, 0, true},
    SimpleSchema{"aten::addmm", Formula::kGemm, 1, true},
    SimpleSchema{"aten::bmm", Formula::kBatchedGemm, 0, true},
    SimpleSchema{"aten::baddbmm", Formula::kBatchedGemm, 1, true},
    SimpleSchema{"aten::mul", Formula::kElementwise, 0, true},
    SimpleSchema{"aten::add", Formula::kElementwise, 0, true},
    SimpleSchema{"aten::linear", Formula::kLinear, 0, false},
    SimpleSchema{"aten::mkldnn_linear", Formula::kLinear, 0, false},
    SimpleSchema{"aten::matmul", Formula::kMatmul, 0, false},
    SimpleSchema{"aten::mv", Formula::kMatmul, 0, false},
    SimpleSchema{"aten::addmv", Formula::kMatmul, 1, false},
    SimpleSchema{"aten::dot", Formula::kMatmul, 0, false},
    SimpleSchema{"aten::addbmm", Formula::kMatmul, 1, false},
    SimpleSchema{"aten::_addmm_activation", Formula::kGemm, 1, false},
    SimpleSchema{"aten::_scaled_mm", Formula::kGemm, 0, false},
    SimpleSchema{"aten::_int_mm", Formula::kGemm, 0, false},
};

int64_t simple(const Inputs& in, const SimpleSchema& schema) {
  if (schema.formula == Formula::kElementwise)
    return in.is_tensor(schema.first) ? Product().times(in.dims[schema.first]).value() : 0;
  if (!in.is_tensor(schema.first) || !in.is_tensor(schema.first + 1)) return 0;
  const Dims& a = in.dims[schema.first];
  const Dims& b = in.dims[schema.first + 1];
  switch (schema.formula) {
    case Formula::kGemm: return gemm(a, b, false);
    case Formula::kBatchedGemm: return gemm(a, b, true);
    case Formula::kMatmul: return matmul(a, b);
    case Formula::kLinear: return linear(a, b);
    case Formula::kElementwise: break;
  }
  return 0;
}

constexpr std::string_view kConvolutionBackward = "aten::convolution_backward";

template <typename Schemas>
auto find_schema(const Schemas& schemas, std::string_view name) -> decltype(schemas.data()) {
  for (const auto& schema : schemas)
    if (schema.name == name) return &schema;
  return nullptr;
}

}  // namespace

bool has_flops_formula(std::string_view name) {
  return name.starts_with("aten::") &&
         (find_schema(kSimple, name) != nullptr || find_schema(kConvolutions, name) != nullptr ||
          find_schema(kAttentions, name) != nullptr || name == kConvolutionBackward);
}

OpFlops compute_flops(std::string_view name, std::string_view input_dims, std::string_view input_types,
                      std::string_view concrete_inputs) {
  if (input_dims.empty()) return {};
  const Inputs in{parse_input_dims(input_dims), parse_input_strings(input_types), parse_input_strings(concrete_inputs)};
  OpFlops flops;
  if (const SimpleSchema* schema = find_schema(kSimple, name)) {
    flops.op_flops = simple(in, *schema);
    if (schema->by_torch) flops.torch_flops = flops.op_flops;
  } else if (const ConvolutionSchema* conv = find_schema(kConvolutions, name)) {
    flops.op_flops = convolution(in, *conv);
    // torch counts conv2d alone, and only with a batch dimension.
    if (name == "aten::conv2d" && in.has(2) && in.dims[0].size() == 4 && in.dims[1].size() == 4)
      flops.torch_flops = flops.op_flops;
  } else if (const AttentionSchema* sdpa = find_schema(kAttentions, name)) {
    flops.op_flops = attention(in, *sdpa);
  } else if (name == kConvolutionBackward) {
    flops.op_flops = convolution_backward(in);
  }
  return flops;
}

FlopsTable::FlopsTable(const Model& model) : model_(model), known_(model.strings.size()), entries_(64) {}

OpFlops FlopsTable::bounded(const OpFlops& flops) {
  constexpr double kMostInAll = 0x1p61;
  const auto size = [](int64_t number) { return std::abs(static_cast<double>(number)); };
  const double more = std::max(size(flops.torch_flops), size(flops.op_flops));
  if (given_ + more >= kMostInAll) return {};
  given_ += more;
  return flops;
}

OpFlops FlopsTable::any_of(Row row) {
  const HostSlices& host = model_.host_slices;
  if (host.kind[row] != HostKind::kOp) return {};
  const Row detail = model_.op_detail(row);
  if (detail == kNoRow) return {};
  const OpDetails& ops = model_.op_details;
  if (ops.flops[detail] != kNoNumber) {
    from_trace_ = true;
    return {ops.flops[detail], ops.flops[detail]};
  }
  if (ops.input_dims[detail] == kNoString) return {};
  uint8_t& known = known_[static_cast<uint32_t>(host.name[row])];
  if (known == 0) known = has_flops_formula(model_.text(host.name[row])) ? 2 : 1;
  if (known == 1) return {};
  const Entry key{
      host.name[row], ops.input_dims[detail], ops.input_types[detail], ops.concrete_inputs[detail], {}, true};
  Entry& entry = find(key);
  if (entry.used) return entry.flops;
  entry = key;
  entry.flops =
      compute_flops(model_.text(key.name), model_.text(key.dims), model_.text(key.types), model_.text(key.concrete));
  const OpFlops flops = entry.flops;
  if (++count_ * 2 > entries_.size()) grow();
  return flops;
}

FlopsTable::Entry& FlopsTable::find(const Entry& key) {
  const auto pair = [](StringId a, StringId b) {
    return uint64_t{static_cast<uint32_t>(a)} << 32 | static_cast<uint32_t>(b);
  };
  size_t at = mix_hash(pair(key.name, key.dims), pair(key.types, key.concrete)) & (entries_.size() - 1);
  while (entries_[at].used && (entries_[at].name != key.name || entries_[at].dims != key.dims ||
                               entries_[at].types != key.types || entries_[at].concrete != key.concrete))
    at = (at + 1) & (entries_.size() - 1);
  return entries_[at];
}

void FlopsTable::grow() {
  std::vector<Entry> old(entries_.size() * 2);
  old.swap(entries_);
  for (const Entry& entry : old)
    if (entry.used) find(entry) = entry;
}

}  // namespace firelane::analyze

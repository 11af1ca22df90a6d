#include "analyze/ops/op_tensors.h"

#include <algorithm>
#include <array>
#include <span>

namespace firelane::analyze {

namespace {

struct TypeSize {
  std::string_view type;
  int64_t bytes;
};
constexpr std::array kTypes = {
    TypeSize{"float", 4},
    TypeSize{"c10::BFloat16", 2},
    TypeSize{"c10::Half", 2},
    TypeSize{"long int", 8},
    TypeSize{"double", 8},
    TypeSize{"int", 4},
    TypeSize{"bool", 1},
    TypeSize{"unsigned char", 1},
    TypeSize{"signed char", 1},
    TypeSize{"short int", 2},
    TypeSize{"short", 2},
    TypeSize{"long", 8},
    TypeSize{"c10::complex<float>", 8},
    TypeSize{"c10::complex<double>", 16},
};

OpTensor make_tensor(const Dims& dims, const std::string& type, const Dims* strides) {
  OpTensor tensor{.dims = dims, .elements = 1, .element_bytes = bytes_of_type(type)};
  tensor.precision = precision_of_type(type);
  int64_t touched = 1;
  int64_t expected_stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const int64_t stride = strides != nullptr && strides->size() == dims.size() ? (*strides)[i] : expected_stride;
    if (dims[i] > 1 && stride != expected_stride) tensor.dense = false;
    expected_stride = product_of_sizes(expected_stride, std::max<int64_t>(dims[i], 1));
    tensor.elements = product_of_sizes(tensor.elements, dims[i]);
    if (stride != 0) touched = product_of_sizes(touched, dims[i]);
  }
  tensor.bytes = product_of_sizes(touched, tensor.element_bytes);
  return tensor;
}

// Ops that take an `out=`, by how many tensors they have at most without: traces of torch.profiler hold no overloads.
// Among them those that torch itself calls with one, as `mean` calls `sum`.
constexpr std::string_view kOfNoTensor[] = {"arange", "eye", "full", "ones", "randperm", "range", "zeros"};
constexpr std::string_view kOfOneTensor[] = {"abs",        "acos", "amax",   "amin",     "argmax",
                                             "argmin",     "ceil", "cos",    "cumsum",   "elu",
                                             "erf",        "exp",  "floor",  "gelu",     "linalg_vector_norm",
                                             "log",        "mean", "neg",    "norm",     "prod",
                                             "reciprocal", "relu", "round",  "rsqrt",    "sigmoid",
                                             "sign",       "silu", "sin",    "_softmax", "_log_softmax",
                                             "softplus",   "sqrt", "square", "std",      "sum",
                                             "tanh",       "tril", "triu",   "var"};
constexpr std::string_view kOfTwoTensors[] = {"add", "sub", "mul", "div", "pow", "maximum", "minimum", "eq",  "ne",
                                              "lt",  "le",  "gt",  "ge",  "mm",  "bmm",     "mv",      "dot", "matmul"};
constexpr std::string_view kOfThreeTensors[] = {"addmm",   "baddbmm", "addmv", "addbmm", "addcmul",
                                                "addcdiv", "where",   "clamp", "lerp",   "linear"};

struct OutArguments {
  std::string_view op;
  std::string_view overload;  // "": `out` and all that end in `_out`
  size_t count;
};
// Overloads with several, or with one under another name: those of torch 2.11 whose kernels are of a class with bytes.
constexpr OutArguments kOutArguments[] = {
    {"_batch_norm_with_update", "", 4},
    {"_native_batch_norm_legit", "", 3},
    {"aminmax", "", 2},
    {"convolution_backward", "", 3},
    {"cummax", "", 2},
    {"cummin", "", 2},
    {"div", "out_mode", 1},
    {"kthvalue", "values", 2},
    {"log_sigmoid_forward", "output", 2},
    {"max", "dim_max", 2},
    {"max_pool2d_with_indices", "", 2},
    {"median", "dim_values", 2},
    {"min", "dim_min", 2},
    {"mode", "values", 2},
    {"native_batch_norm", "", 3},
    {"native_batch_norm_backward", "", 3},
    {"native_dropout", "", 2},
    {"native_group_norm", "", 3},
    {"native_group_norm_backward", "", 3},
    {"native_layer_norm", "", 3},
    {"native_layer_norm_backward", "", 3},
    {"nll_loss_forward", "output", 2},
    {"sort", "values", 2},
    {"sort", "values_stable", 2},
    {"std_mean", "", 2},
    {"topk", "values", 2},
    {"var_mean", "", 2},
    {"xlogy", "OutTensor", 1},
};

size_t out_arguments_of(std::string_view op, std::string_view overload) {
  const bool has_out = overload == "out" || overload.ends_with("_out") || overload == "grad_input";
  for (const OutArguments& each : kOutArguments) {
    if (each.op == op && (each.overload.empty() ? has_out : each.overload == overload)) return each.count;
  }
  return has_out ? 1 : 0;
}

// How many of an op's arguments are an `out=`: its last ones. `tensors`: how many of all are tensors.
size_t count_out_arguments(std::string_view op, std::string_view overload, size_t tensors) {
  constexpr std::string_view kAten = "aten::";
  const bool is_aten = op.starts_with(kAten);
  if (is_aten) op.remove_prefix(kAten.size());
  if (!overload.empty()) return out_arguments_of(is_aten ? op : "", overload);
  if (!is_aten) return 0;
  const auto is_among = [op](std::span<const std::string_view> names) {
    return std::ranges::find(names, op) != names.end();
  };
  const bool has_out = (tensors == 1 && is_among(kOfNoTensor)) || (tensors == 2 && is_among(kOfOneTensor)) ||
                       (tensors == 3 && is_among(kOfTwoTensors)) || (tensors == 4 && is_among(kOfThreeTensors));
  return has_out ? 1 : 0;
}

int64_t matmul_output_elements(const std::vector<OpTensor>& inputs) {
  // The last two of rank 2 or more are the factors; addmm's first is what is added.
  if (inputs.size() < 2) return kNoNumber;
  const OpTensor& a = inputs[inputs.size() - 2];
  const OpTensor& b = inputs.back();
  if (a.dims.empty() || b.dims.empty() || a.dims.back() == 0) return kNoNumber;
  const int64_t columns = b.dims.size() > 1 ? b.dims.back() : 1;
  return product_of_sizes(a.elements / a.dims.back(), columns);
}

int64_t convolution_output_elements(const std::vector<OpTensor>& inputs, int64_t flops) {
  if (inputs.size() < 2 || inputs[1].elements <= 0 || inputs[1].dims.empty() || flops <= 0) return kNoNumber;
  return product_of_sizes(flops / 2 / inputs[1].elements, inputs[1].dims.front());
}

}  // namespace

int64_t bytes_of_type(std::string_view type) {
  if (type.starts_with("c10::Float8")) return 1;
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeSize& each) { return each.type == type; });
  return found == kTypes.end() ? 0 : found->bytes;
}

std::vector<OpTensor> input_tensors(std::string_view dims, std::string_view types, std::string_view strides) {
  const std::vector<Dims> shapes = parse_input_dims(dims);
  const std::vector<std::string> names = parse_input_strings(types);
  const std::vector<Dims> steps = parse_input_dims(strides);
  std::vector<OpTensor> tensors;
  for (size_t i = 0; i < shapes.size() && i < names.size(); ++i) {
    if (bytes_of_type(names[i]) == 0) continue;
    tensors.push_back(make_tensor(shapes[i], names[i], i < steps.size() ? &steps[i] : nullptr));
  }
  return tensors;
}

std::vector<OpTensor> input_tensors(const Model& model, Row op) {
  if (op == kNoRow || model.host_slices.kind[op] != HostKind::kOp) return {};
  const Row detail = model.op_detail(op);
  if (detail == kNoRow) return {};
  const OpDetails& details = model.op_details;
  std::vector<OpTensor> tensors =
      input_tensors(model.text(details.input_dims[detail]), model.text(details.input_types[detail]),
                    model.text(details.input_strides[detail]));
  const size_t outs =
      count_out_arguments(model.text(model.host_slices.name[op]), model.text(details.overload[detail]), tensors.size());
  for (size_t i = tensors.size() - std::min(outs, tensors.size()); i < tensors.size(); ++i) tensors[i].is_output = true;
  return tensors;
}

const std::vector<OpTensor>& InputTensors::of(Row op) {
  static const std::vector<OpTensor> kNone;
  if (op == kNoRow || model_.host_slices.kind[op] != HostKind::kOp) return kNone;
  const Row detail = model_.op_detail(op);
  if (detail == kNoRow) return kNone;
  const OpDetails& details = model_.op_details;
  const auto [found, is_new] =
      known_.try_emplace(Key{model_.host_slices.name[op], details.overload[detail], details.input_dims[detail],
                             details.input_types[detail], details.input_strides[detail]});
  if (is_new) found->second = input_tensors(model_, op);
  return found->second;
}

bool are_aligned(const std::vector<OpTensor>& tensors) {
  for (const OpTensor& tensor : tensors) {
    if (tensor.dims.size() < 2 || tensor.element_bytes == 0) continue;
    const int64_t multiple = 16 / std::min<int64_t>(tensor.element_bytes, 16);
    for (size_t i = tensor.dims.size() - 2; i < tensor.dims.size(); ++i) {
      if (tensor.dims[i] % multiple != 0) return false;
    }
  }
  return true;
}

int64_t op_bytes(std::string_view op_name, KernelClass kernel_class, const std::vector<OpTensor>& tensors,
                 int64_t flops) {
  std::vector<OpTensor> inputs;
  int64_t out_bytes =
      0;  // an `out=` of the wrong size, as torch passes an empty one, is resized: its size says nothing
  for (const OpTensor& tensor : tensors) {
    if (tensor.is_output) {
      out_bytes += tensor.bytes;
    } else {
      inputs.push_back(tensor);
    }
  }
  if (inputs.empty()) return out_bytes > 0 ? out_bytes : kNoNumber;
  int64_t read = 0;
  const OpTensor* largest = &inputs.front();
  for (const OpTensor& tensor : inputs) {
    read += tensor.bytes;
    if (tensor.elements > largest->elements) largest = &tensor;
  }
  const auto written = [&](int64_t elements, const OpTensor& like) {
    if (out_bytes > 0) return read + out_bytes;
    return elements == kNoNumber ? kNoNumber : read + product_of_sizes(elements, like.element_bytes);
  };
  if (op_name == "aten::fill_" || op_name == "aten::zero_") return inputs.front().bytes;
  if (op_name == "aten::copy_") return read;  // its first input is what it writes
  switch (kernel_class) {
    case KernelClass::kMatmul: return written(matmul_output_elements(inputs), inputs.back());
    case KernelClass::kConvolution: return written(convolution_output_elements(inputs, flops), inputs.front());
    case KernelClass::kAttention: return written(inputs.front().elements, inputs.front());
    case KernelClass::kPointwise:
    case KernelClass::kNormalization: return written(largest->elements, *largest);
    case KernelClass::kReduction: return read + out_bytes;
    default: return kNoNumber;
  }
}

}  // namespace firelane::analyze

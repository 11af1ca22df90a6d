#include "bind/record/fast_op.h"

#include <nanobind/stl/string.h>

#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/core/input_blob.h"
#include "record/core/thread_buffer.h"
#include "record/library/library.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace firelane::bind_record {
namespace {

bool g_with_inputs = false;  // guarded by the GIL

struct FastOp {
  std::unique_ptr<library::Op> op;
  nb::object inputs;    // a list or tuple; null: none
  nb::object keywords;  // a dict; null: none
};

std::string text_of(double number) {
  std::array<char, 40> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

// c10::ScalarType's number of a torch.dtype, which Python only tells by name.
uint8_t dtype_number(nb::handle dtype) {
  constexpr std::array<std::pair<std::string_view, uint8_t>, 20> kNumbers = {{
      {"torch.uint8", 0},
      {"torch.int8", 1},
      {"torch.int16", 2},
      {"torch.int32", 3},
      {"torch.int64", 4},
      {"torch.float16", 5},
      {"torch.float32", 6},
      {"torch.float64", 7},
      {"torch.complex32", 8},
      {"torch.complex64", 9},
      {"torch.complex128", 10},
      {"torch.bool", 11},
      {"torch.bfloat16", 15},
      {"torch.float8_e5m2", 23},
      {"torch.float8_e4m3fn", 24},
      {"torch.uint16", 27},
      {"torch.uint32", 28},
      {"torch.uint64", 29},
      {"torch.float8_e5m2fnuz", 25},
      {"torch.float8_e4m3fnuz", 26},
  }};
  constexpr uint8_t kUndefined = 45;
  const nb::str text(dtype);
  for (const auto& [name, number] : kNumbers) {
    if (name == text.c_str()) return number;
  }
  return kUndefined;
}

bool is_tensor(nb::handle value) {
  return nb::hasattr(value, "dtype") && nb::hasattr(value, "shape") && nb::hasattr(value, "stride");
}

void add_tensor(nb::handle tensor, record::InputBlob& blob) {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  for (const nb::handle size : tensor.attr("shape")) sizes.push_back(nb::cast<int64_t>(size));
  for (const nb::handle stride : tensor.attr("stride")()) strides.push_back(nb::cast<int64_t>(stride));
  const bool has_strides = strides.size() == sizes.size();
  blob.tensor(dtype_number(tensor.attr("dtype")), sizes.data(), has_strides ? strides.data() : nullptr, sizes.size());
}

bool is_number(nb::handle value) {
  return nb::isinstance<nb::bool_>(value) || nb::isinstance<nb::int_>(value) || nb::isinstance<nb::float_>(value);
}

std::string number_text(nb::handle value) {
  if (nb::isinstance<nb::float_>(value)) return text_of(nb::cast<double>(value));
  return nb::str(value).c_str();
}

void add_list(nb::handle list, record::InputBlob& blob) {
  bool all_tensors = true;
  bool all_numbers = true;
  std::string text = "[";
  for (const nb::handle item : list) {
    all_tensors = all_tensors && is_tensor(item);
    all_numbers = all_numbers && is_number(item);
    if (all_numbers) text += (text.size() > 1 ? ", " : "") + number_text(item);
  }
  if (nb::len(list) > 0 && all_tensors) {
    blob.tensor_list(static_cast<uint32_t>(nb::len(list)));
    for (const nb::handle item : list) add_tensor(item, blob);
  } else if (all_numbers) {
    blob.scalar_list(text + "]");
  } else {
    blob.other("");
  }
}

void add_input(nb::handle value, record::InputBlob& blob) {
  if (is_tensor(value)) return add_tensor(value, blob);
  if (is_number(value)) return blob.scalar(number_text(value));
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) return add_list(value, blob);
  blob.other("");
}

// What torch writes into Chrome traces: numbers, texts, and lists of texts.
bool is_written(nb::handle value) {
  if (is_number(value) || nb::isinstance<nb::str>(value)) return true;
  if (!nb::isinstance<nb::list>(value)) return false;
  for (const nb::handle item : value) {
    if (!nb::isinstance<nb::str>(item)) return false;
  }
  return true;
}

std::string keywords_json(nb::handle keywords) {
  nb::dict written;
  for (const auto& [key, value] : nb::borrow<nb::dict>(keywords)) {
    const bool is_no_stream =
        std::string_view(nb::borrow<nb::str>(key).c_str()) == "stream" && !nb::isinstance<nb::int_>(value);
    if (!is_no_stream && is_written(value)) written[key] = value;
  }
  return nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(written));
}

// Before the op begins: asking Python objects may run Python code, which is recorded itself.
void capture(const FastOp& op, record::InputBlob& blob, std::string& keywords) {
  try {
    if (op.inputs.is_valid()) {
      for (const nb::handle value : op.inputs) add_input(value, blob);
    }
    if (op.keywords.is_valid()) keywords = keywords_json(op.keywords);
  } catch (const std::exception&) {  // a value that does not say what it is: python_error holds and drops the exception
  }
}

// The op has just been begun on this thread: what follows belongs to it.
void attach(const record::InputBlob& blob, const std::string& keywords) {
  record::ThreadBuffer* b = record::recording_thread();
  if (b == nullptr) return;
  if (!blob.bytes().empty()) b->attribute(format::Attribute::kInputs, b->inputs(blob));
  if (keywords.size() > 2) b->attribute(format::Attribute::kExtraArgs, b->text(keywords));
}

void init(FastOp* self, nb::handle name, nb::handle inputs, nb::handle keywords) {
  if (!nb::isinstance<nb::str>(name))
    throw std::runtime_error("The name passed to RecordFunctionFast must be a string");
  const auto given = [](nb::handle value) { return !value.is_none(); };
  if (given(inputs) && !nb::isinstance<nb::list>(inputs) && !nb::isinstance<nb::tuple>(inputs))
    throw std::runtime_error("input_values must be a list or tuple");
  if (given(keywords) && !nb::isinstance<nb::dict>(keywords)) throw std::runtime_error("keyword_values must be dict");
  const bool is_user_range =
      given(keywords) && nb::borrow<nb::dict>(keywords).attr("get")("scope").equal(nb::str("user_scope"));
  new (self) FastOp();
  self->op.reset(firelane_recorder_library()->new_op(nb::borrow<nb::str>(name).c_str(), is_user_range));
  if (given(inputs)) self->inputs = nb::borrow(inputs);
  if (given(keywords)) self->keywords = nb::borrow(keywords);
}

void enter(FastOp& self) {
  record::InputBlob blob;
  std::string keywords;
  if (g_with_inputs) capture(self, blob, keywords);
  if (self.op->begin()) attach(blob, keywords);
}

}  // namespace

void set_fast_op_inputs(bool on) noexcept { g_with_inputs = on; }

void bind_fast_op(nb::module_& m) {
  nb::class_<FastOp>(m, "FastOp")
      .def("__init__", &init, "name"_a, "input_values"_a = nb::none(), "keyword_values"_a = nb::none())
      .def("__enter__", &enter)
      .def("__exit__", [](FastOp& self, nb::args) { self.op->end(); });
  m.def("set_fast_op_inputs", &set_fast_op_inputs, "on"_a);
}

}  // namespace firelane::bind_record

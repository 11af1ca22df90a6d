#include "record/torch/input_capture.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/hash.h"

namespace firelane::torch_hooks {
namespace {

constexpr size_t kMaxListLength = 30;  // torch.profiler's limit for lists of numbers

// Text in a fixed buffer; what does not fit is cut.
class Text {
 public:
  void add(std::string_view text) noexcept {
    const size_t n = std::min(text.size(), bytes_.size() - size_);
    std::memcpy(bytes_.data() + size_, text.data(), n);
    size_ += n;
  }
  void add(int64_t number) noexcept { end(std::to_chars(begin(), limit(), number)); }
  // As torch prints them: "1." for whole numbers, else 17 digits.
  void add(double number) noexcept {
    if (std::abs(number) < 1e10 && std::trunc(number) == number) {
      add(static_cast<int64_t>(number));
      add(".");
    } else {
      end(std::to_chars(begin(), limit(), number, std::chars_format::general, 17));
    }
  }
  std::string_view view() const noexcept { return {bytes_.data(), size_}; }

 private:
  char* begin() noexcept { return bytes_.data() + size_; }
  char* limit() noexcept { return bytes_.data() + bytes_.size(); }
  void end(std::to_chars_result result) noexcept {
    if (result.ec == std::errc()) size_ = static_cast<size_t>(result.ptr - bytes_.data());
  }

  size_t size_ = 0;
  std::array<char, 1024> bytes_;
};

bool is_plain_number(const c10::IValue& value) { return value.isInt() || value.isDouble() || value.isBool(); }

void add_number(Text& text, const c10::IValue& value) {
  if (value.isInt()) {
    text.add(value.toInt());
  } else if (value.isDouble()) {
    text.add(value.toDouble());
  } else {
    text.add(value.toBool() ? "True" : "False");
  }
}

bool has_plain_sizes(const c10::TensorImpl* impl) { return !impl->is_nested() && !impl->has_symbolic_sizes_strides(); }

void capture_tensor(const at::Tensor& tensor, record::InputBlob& blob) {
  if (!tensor.defined()) return blob.undefined_tensor();
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!has_plain_sizes(impl)) return blob.other("");
  const c10::IntArrayRef sizes = impl->sizes();
  const bool has_strides = impl->layout() == c10::kStrided;
  blob.tensor(static_cast<uint8_t>(tensor.scalar_type()), sizes.data(), has_strides ? impl->strides().data() : nullptr,
              sizes.size());
}

void capture_list(c10::ArrayRef<c10::IValue> items, InputValues values, record::InputBlob& blob) {
  bool all_numbers = !items.empty() && items.size() <= kMaxListLength;
  for (size_t i = 0; all_numbers && i < items.size(); ++i) all_numbers = is_plain_number(items[i]);
  if (!all_numbers) return items.empty() ? blob.scalar_list("[]") : blob.other("");
  if (values == InputValues::kLeaveOut) return blob.scalar_list("");
  Text text;
  text.add("[");
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text.add(", ");
    add_number(text, items[i]);
  }
  text.add("]");
  blob.scalar_list(text.view());
}

void capture(const c10::IValue& value, InputValues values, record::InputBlob& blob) {
  if (value.isTensor()) return capture_tensor(value.toTensor(), blob);
  if (is_plain_number(value)) {
    if (values == InputValues::kLeaveOut) return blob.scalar("");
    if (value.isBool()) return blob.scalar(value.toBool() ? "True" : "False");
    Text text;
    add_number(text, value);
    return blob.scalar(text.view());
  }
  if (value.isComplexDouble()) return blob.scalar("");
  if (value.isTensorList()) {
    const c10::ArrayRef<c10::IValue> items = value.toListRef();
    blob.tensor_list(static_cast<uint32_t>(items.size()));
    for (const c10::IValue& item : items) capture_tensor(item.toTensor(), blob);
    return;
  }
  if (value.isList()) return capture_list(value.toListRef(), values, blob);
  blob.other("");
}

// ---- The same walk for the key: every branch of capture() has its own word here.

uint64_t kind_word(format::InputKind kind, uint64_t more = 0) noexcept {
  return static_cast<uint64_t>(kind) | more << 8;
}

uint64_t add_tensor(uint64_t key, const at::Tensor& tensor) {
  if (!tensor.defined()) return mix_hash(key, kind_word(format::InputKind::kUndefined));
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!has_plain_sizes(impl)) return mix_hash(key, kind_word(format::InputKind::kOther));
  const c10::IntArrayRef sizes = impl->sizes();
  const bool has_strides = impl->layout() == c10::kStrided;
  key = mix_hash(key,
                 kind_word(format::InputKind::kTensor, static_cast<uint64_t>(tensor.scalar_type()) |
                                                           uint64_t{has_strides} << 8 | uint64_t{sizes.size()} << 16));
  const int64_t* strides = has_strides ? impl->strides().data() : sizes.data();
  for (size_t i = 0; i < sizes.size(); ++i) {
    key = mix_hash(key ^ static_cast<uint64_t>(sizes[i]), static_cast<uint64_t>(strides[i]));
  }
  return key;
}

uint64_t add_number(uint64_t key, const c10::IValue& value, InputValues values) {
  if (values == InputValues::kLeaveOut) return mix_hash(key, kind_word(format::InputKind::kScalar));
  if (value.isInt())
    return mix_hash(key ^ static_cast<uint64_t>(value.toInt()), kind_word(format::InputKind::kScalar, 1));
  if (value.isBool()) return mix_hash(key, kind_word(format::InputKind::kScalar, value.toBool() ? 3 : 2));
  return mix_hash(key ^ std::bit_cast<uint64_t>(value.toDouble()), kind_word(format::InputKind::kScalar, 4));
}

uint64_t add_value(uint64_t key, const c10::IValue& value, InputValues values) {
  if (value.isTensor()) return add_tensor(key, value.toTensor());
  if (is_plain_number(value)) return add_number(key, value, values);
  if (value.isComplexDouble()) return mix_hash(key, kind_word(format::InputKind::kScalar, 5));
  if (!value.isList()) return mix_hash(key, kind_word(format::InputKind::kOther));
  const bool of_tensors = value.isTensorList();
  const c10::ArrayRef<c10::IValue> items = value.toListRef();
  key = mix_hash(key,
                 kind_word(of_tensors ? format::InputKind::kTensorList : format::InputKind::kScalarList, items.size()));
  if (!of_tensors && items.size() > kMaxListLength) return key;
  for (const c10::IValue& item : items) {
    if (of_tensors) {
      key = add_tensor(key, item.toTensor());
    } else if (is_plain_number(item)) {
      key = add_number(key, item, values);
    } else {
      return mix_hash(key, kind_word(format::InputKind::kOther));
    }
  }
  return key;
}

}  // namespace

uint64_t key_of_inputs(c10::ArrayRef<const c10::IValue> inputs, InputValues values) noexcept {
  uint64_t key = inputs.size();
  for (const c10::IValue& input : inputs) {
    try {
      key = add_value(key, input, values);
    } catch (...) {
      key = mix_hash(key, kind_word(format::InputKind::kOther));
    }
  }
  return key;
}

void capture_inputs(c10::ArrayRef<const c10::IValue> inputs, InputValues values, record::InputBlob& blob) noexcept {
  for (const c10::IValue& input : inputs) {
    try {
      capture(input, values, blob);
    } catch (...) {  // a tensor subclass that does not give its sizes
      blob.other("");
    }
  }
}

}  // namespace firelane::torch_hooks

// The inputs of one op (dims, dtypes, strides, concrete values) as bytes: built on the
// stack at once, so that no tensor is kept alive, then interned by content (most calls of
// an op repeat an earlier call's shapes, and cost a hash and 4 bytes in the trace).
//
//   InputBlob blob;
//   blob.tensor(/*dtype=*/6, sizes, strides);
//   blob.scalar("1");
//   buffer->attribute(Attribute::kInputs, buffer->inputs(blob));
//
// Layout: docs/format.md, "inputs". Inputs that do not fit kCapacity are left out and the
// blob says so (the reader shows "...").
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "format/layout.h"

namespace firelane::record {

class InputBlob {
 public:
  static constexpr size_t kCapacity = 4096;

  // A defined tensor. `dtype` is c10::ScalarType's number. `strides` null: not recorded.
  void tensor(uint8_t dtype, const int64_t* sizes, const int64_t* strides, size_t rank) noexcept {
    const size_t ranks = strides == nullptr ? 1 : 2;
    if (rank > 255 || !reserve(8 + ranks * rank * 8)) return overflow();
    head(format::InputKind::kTensor, dtype, static_cast<uint8_t>(rank), strides == nullptr ? 0 : 1, 0);
    copy_words(sizes, rank);
    if (strides != nullptr) copy_words(strides, rank);
  }
  // A tensor argument without a tensor (None, undefined).
  void undefined_tensor() noexcept { head_only(format::InputKind::kUndefined, 0); }
  // The next `count` inputs are the elements of one TensorList.
  void tensor_list(uint32_t count) noexcept { head_only(format::InputKind::kTensorList, count); }
  // A number, bool or string argument, as torch prints it in "Concrete Inputs": "1", "0.5", "True".
  void scalar(std::string_view text) noexcept { with_text(format::InputKind::kScalar, text); }
  // A list of numbers as text: "[1, 1]".
  void scalar_list(std::string_view text) noexcept { with_text(format::InputKind::kScalarList, text); }
  // Anything else; `type` is shown as its type: "Dict", "GenericList", "" ...
  void other(std::string_view type) noexcept { with_text(format::InputKind::kOther, type); }

  std::string_view bytes() const noexcept { return {data_, size_}; }
  void clear() noexcept {
    size_ = 0;
    overflowed_ = false;
  }

 private:
  bool reserve(size_t bytes) const noexcept { return !overflowed_ && size_ + bytes + 8 <= kCapacity; }
  // Room for this last head was kept by reserve().
  void overflow() noexcept {
    if (overflowed_) return;
    overflowed_ = true;
    head(format::InputKind::kCutOff, 0, 0, 0, 0);
  }
  void head(format::InputKind kind, uint8_t a, uint8_t b, uint8_t c, uint32_t count) noexcept {
    const uint64_t word =
        static_cast<uint64_t>(kind) | uint64_t{a} << 8 | uint64_t{b} << 16 | uint64_t{c} << 24 | uint64_t{count} << 32;
    std::memcpy(data_ + size_, &word, 8);
    size_ += 8;
  }
  // A loop: dims are few, and a call of memcpy costs more than they do.
  void copy_words(const int64_t* from, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) std::memcpy(data_ + size_ + 8 * i, from + i, 8);
    size_ += 8 * count;
  }
  void head_only(format::InputKind kind, uint32_t count) noexcept {
    if (!reserve(8)) return overflow();
    head(kind, 0, 0, 0, count);
  }
  void with_text(format::InputKind kind, std::string_view text) noexcept {
    const size_t padded = (text.size() + 7) & ~size_t{7};
    if (!reserve(8 + padded)) return overflow();
    head(kind, 0, 0, 0, static_cast<uint32_t>(text.size()));
    if (padded > 0) std::memset(data_ + size_ + padded - 8, 0, 8);
    std::memcpy(data_ + size_, text.data(), text.size());
    size_ += padded;
  }
  size_t size_ = 0;
  bool overflowed_ = false;
  alignas(8) char data_[kCapacity];
};

}  // namespace firelane::record

// Which tensors the inputs of an op are: the address of each tensor and of its storage, and its device. Analyses that
// follow tensors from op to op (torch.profiler's memory profile) join ops with each other, and with allocations, by
// them.
//
// The words of an op, by input (docs/format.md, "tensors"):
//   0                                            no tensor
//   tensor | (device + 1) << 48 | type << 56     then storage | dtype << 48 | layout << 56
//   1 << 63 | count                              a list of tensors: `count` items, 0 or a pair as above
//
// An address means another tensor once its tensor is gone, so tensors that were seen are held by weak references until
// release_tensors(): their values are freed as ever, and only the 200 bytes that describe them stay.
#pragma once

#include <ATen/core/ivalue.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace firelane::torch_hooks {

class TensorWords {
 public:
  // Never throws; allocates nothing. What does not fit is left out.
  explicit TensorWords(c10::ArrayRef<const c10::IValue> inputs) noexcept;
  bool has_tensors() const noexcept { return has_tensors_; }
  std::string_view bytes() const noexcept {
    return {reinterpret_cast<const char*>(words_.data()), size_ * sizeof(uint64_t)};
  }

 private:
  void add(const c10::IValue& input);
  void add_tensor(const at::Tensor& tensor) noexcept;

  size_t size_ = 0;
  bool has_tensors_ = false;
  std::array<uint64_t, 1024> words_;
};

// Before the first TensorWords of a recording. False when the system refuses the address space.
bool prepare_to_hold_tensors() noexcept;
// Lets go of all tensors. Ops may run meanwhile.
void release_tensors() noexcept;
// Tensors that found no place since prepare_to_hold_tensors(): their addresses may mean several.
uint64_t tensors_not_held() noexcept;

}  // namespace firelane::torch_hooks

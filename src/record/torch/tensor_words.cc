#include "record/torch/tensor_words.h"

#include <ATen/core/Tensor.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "base/hash.h"

namespace firelane::torch_hooks {
namespace {

constexpr size_t kPlaces = 256 << 10;
constexpr size_t kProbes = 32;
using Place = std::atomic<c10::TensorImpl*>;

std::atomic<Place*> g_places{nullptr};
std::atomic<uint64_t> g_not_held{0};

void hold(c10::TensorImpl* tensor) noexcept {
  Place* places = g_places.load(std::memory_order_acquire);
  if (places == nullptr) return;
  const uint64_t hash = mix_hash(reinterpret_cast<uintptr_t>(tensor), 0);
  bool referenced = false;
  for (size_t i = 0; i < kProbes; ++i) {
    Place& place = places[(hash + i) & (kPlaces - 1)];
    c10::TensorImpl* there = place.load(std::memory_order_acquire);
    if (there == nullptr) {
      // Before the place is taken: whoever empties it gives the reference back.
      if (!referenced) c10::raw::weak_intrusive_ptr::incref(tensor);
      referenced = true;
      if (place.compare_exchange_strong(there, tensor, std::memory_order_acq_rel)) return;
    }
    if (there == tensor) {
      if (referenced) c10::raw::weak_intrusive_ptr::decref(tensor);
      return;
    }
  }
  if (referenced) c10::raw::weak_intrusive_ptr::decref(tensor);
  g_not_held.fetch_add(1, std::memory_order_relaxed);
}

// Null for tensors without memory of their own, such as fake ones.
const void* storage_of(const c10::TensorImpl* tensor) {
  if (!tensor->has_storage()) return nullptr;
  return tensor->unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
}

}  // namespace

TensorWords::TensorWords(c10::ArrayRef<const c10::IValue> inputs) noexcept {
  for (const c10::IValue& input : inputs) {
    if (size_ + 2 > words_.size()) return;
    const size_t before = size_;
    try {
      add(input);
    } catch (...) {  // a tensor subclass that does not say where it lies
      size_ = before;
      words_[size_++] = 0;
    }
  }
}

void TensorWords::add(const c10::IValue& input) {
  if (input.isTensor()) {
    add_tensor(input.toTensor());
  } else if (input.isTensorList()) {
    const c10::ArrayRef<c10::IValue> items = input.toListRef();
    const size_t count = std::min(items.size(), (words_.size() - size_ - 1) / 2);
    words_[size_++] = uint64_t{1} << 63 | count;
    for (const c10::IValue& item : items.slice(0, count)) add_tensor(item.toTensor());
  } else {
    words_[size_++] = 0;
  }
}

void TensorWords::add_tensor(const at::Tensor& tensor) noexcept {
  constexpr uint64_t kAddress = (uint64_t{1} << 48) - 1;
  if (!tensor.defined()) {
    words_[size_++] = 0;
    return;
  }
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const void* storage = nullptr;
  c10::Device device(c10::kCPU);
  uint64_t layout = 0;
  try {
    storage = storage_of(impl);
    device = impl->device();
    layout = static_cast<uint8_t>(impl->layout());
  } catch (...) {  // a tensor subclass that does not say where it lies
  }
  hold(impl);
  has_tensors_ = true;
  words_[size_++] = (reinterpret_cast<uintptr_t>(impl) & kAddress) |
                    uint64_t{static_cast<uint8_t>(device.index() + 1)} << 48 |
                    (static_cast<uint64_t>(device.type()) & 0x7f) << 56;
  words_[size_++] = (reinterpret_cast<uintptr_t>(storage) & kAddress) |
                    uint64_t{static_cast<uint8_t>(c10::typeMetaToScalarType(impl->dtype()))} << 48 | layout << 56;
}

bool prepare_to_hold_tensors() noexcept {
  release_tensors();
  g_not_held = 0;
  if (g_places.load() != nullptr) return true;
  void* memory = ::mmap(nullptr, kPlaces * sizeof(Place), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  g_places.store(static_cast<Place*>(memory), std::memory_order_release);
  return true;
}

void release_tensors() noexcept {
  Place* places = g_places.load(std::memory_order_acquire);
  for (size_t i = 0; places != nullptr && i < kPlaces; ++i) {
    if (places[i].load(std::memory_order_relaxed) == nullptr) continue;
    if (c10::TensorImpl* tensor = places[i].exchange(nullptr)) c10::raw::weak_intrusive_ptr::decref(tensor);
  }
}

uint64_t tensors_not_held() noexcept { return g_not_held.load(std::memory_order_relaxed); }

}  // namespace firelane::torch_hooks

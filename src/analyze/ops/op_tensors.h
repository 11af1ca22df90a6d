// The tensors of an op, as far as a trace tells: elements and bytes of its inputs, and of what it writes.
//
// Traces give the shapes and types of inputs only, and no addresses. What an op writes follows from its kind (docs/
// analyses.md, "roofline"); an op of unknown kind has no bytes rather than wrong ones.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/device/kernel_traits.h"
#include "analyze/ops/op_inputs.h"
#include "base/hash.h"
#include "model/model.h"

namespace firelane::analyze {

struct OpTensor {
  Dims dims;
  int64_t elements = 0;
  int64_t element_bytes = 0;  // 0: of a type we do not know
  // Bytes of memory that reading it touches: dimensions with stride 0 (expanded) count once.
  int64_t bytes = 0;
  Precision precision = Precision::kUnknown;
  bool dense = true;       // false: its strides leave gaps or another order than the shape's
  bool is_output = false;  // an `out=` argument: written, not read
};

// 4 for "float"; 0 for what is not a tensor's type.
int64_t bytes_of_type(std::string_view type);

// Inputs that are tensors with a known shape, in order; lists of tensors and scalars left out.
std::vector<OpTensor> input_tensors(std::string_view dims, std::string_view types, std::string_view strides = {});
// The same of an op of a trace; `out=` arguments are last, and marked.
std::vector<OpTensor> input_tensors(const Model& model, Row op);

// The same for those who ask for many ops: each combination of shapes, types and strides is read once. For one thread.
class InputTensors {
 public:
  explicit InputTensors(const Model& model) : model_(model) {}
  const std::vector<OpTensor>& of(Row op);

 private:
  struct Key {
    StringId name, overload, dims, types, strides;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      const auto both = [](StringId a, StringId b) {
        return (uint64_t{static_cast<uint32_t>(a)} << 32) | static_cast<uint32_t>(b);
      };
      return mix_hash(mix_hash(both(key.dims, key.types), both(key.name, key.overload)),
                      static_cast<uint32_t>(key.strides));
    }
  };

  const Model& model_;
  std::unordered_map<Key, std::vector<OpTensor>, Hash> known_;
};

// Whether the last two dimensions of all matrices fill whole groups of 16 bytes, as tensor cores want it: multiples of
// 8 for 16-bit types, 4 for fp32.
bool are_aligned(const std::vector<OpTensor>& tensors);

// Memory traffic of one call at least: each input read once, each output written once. kNoNumber: not known.
// `flops`: of the op, for the outputs of convolutions. The op's name tells ops that write in place. An output that is
// among the inputs (`out=`) counts once, as what it is.
int64_t op_bytes(std::string_view op_name, KernelClass kernel_class, const std::vector<OpTensor>& inputs,
                 int64_t flops);

}  // namespace firelane::analyze

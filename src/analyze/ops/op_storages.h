// Which memory an op's inputs are in, where the recording follows tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct StorageInput {
  uint64_t tensor = 0;
  uint64_t storage = 0;  // where its memory begins
  bool on_cpu = false;
  std::string_view type;
  size_t place = 0;  // among the op's inputs
  bool in_list = false;
};

// For op_details.tensors: [[tensor, storage, device type, device, dtype], null, [[tensor, ...], ...]]. Those without
// memory are left out.
std::vector<StorageInput> parse_storages(std::string_view json);

// Of that row of host_slices; {} where the recording does not follow tensors, and for rows that are no ops.
std::vector<StorageInput> storages_of_op(const Model& model, Row op);

}  // namespace firelane::analyze

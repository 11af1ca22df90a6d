// Floating-point operations of an op, from its recorded inputs. A multiply-add is two.
//
// Two counts, kept apart:
//  - torch_flops: what torch.profiler's with_flops gives, for its seven ops and no others;
//  - op_flops: the same, and the ops that carry today's models: linear, matmul, convolutions
//    of every rank and their backward, scaled dot product attention and its backward.
// docs/ops.md has the formulas. 0 = no formula, or the trace lacks what it needs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct OpFlops {
  int64_t torch_flops = 0;
  int64_t op_flops = 0;
};

OpFlops compute_flops(std::string_view name, std::string_view input_dims, std::string_view input_types,
                      std::string_view concrete_inputs);

// Whether compute_flops knows a formula for ops of that name.
bool has_flops_formula(std::string_view name);

// FLOPs of a model's ops; equal inputs are computed once. Not thread-safe.
class FlopsTable {
 public:
  explicit FlopsTable(const Model& model);
  // `row`: a host slice. What the trace itself says wins over the formulas. All answers of a table add up to less than
  // 2^61, so that sums of them fit: beyond that, which broken shapes alone can reach, they are 0.
  OpFlops of(Row row) { return bounded(any_of(row)); }
  // Whether the trace itself gave FLOPs for some op.
  bool from_trace() const { return from_trace_; }

 private:
  OpFlops any_of(Row row);
  OpFlops bounded(const OpFlops& flops);
  struct Entry {
    StringId name{}, dims{}, types{}, concrete{};
    OpFlops flops;
    bool used = false;
  };
  Entry& find(const Entry& key);
  void grow();

  const Model& model_;
  std::vector<uint8_t> known_;  // per name: 0 not asked, 1 no formula, 2 has one
  std::vector<Entry> entries_;  // open addressing, a power of two
  size_t count_ = 0;
  bool from_trace_ = false;
  double given_ = 0;  // in all answers so far
};

}  // namespace firelane::analyze

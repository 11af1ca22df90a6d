#include "advise/dead_passes.h"

#include <algorithm>

#include "advise/host_evidence.h"

namespace firelane::advise {

DeadPasses::DeadPasses(const Model& model, const Gradients& gradients) : host_(model.host_slices) {
  const auto has_any = [&](const std::vector<Row>& rows, const analyze::Interval& pass) {
    return std::any_of(rows.begin(), rows.end(), [&](Row row) {
      return host_.start_ns[row] >= pass.start_ns && host_.start_ns[row] < pass.end_ns;
    });
  };
  if (!gradients.thrown_away) return;
  for (const analyze::Interval& pass : gradients.passes) {
    if (!has_any(gradients.used, pass) && has_any(gradients.nodes, pass)) passes_.push_back(pass);
  }
}

bool DeadPasses::holds(Row op) const {
  const auto pass = std::partition_point(
      passes_.begin(), passes_.end(), [&](const analyze::Interval& each) { return each.end_ns <= host_.start_ns[op]; });
  return pass != passes_.end() && host_.start_ns[op] >= pass->start_ns;
}

std::vector<Row> with_those_between(const Model& model, std::vector<Row> ops) {
  const HostSlices& host = model.host_slices;
  std::sort(ops.begin(), ops.end());  // by thread, then time
  std::vector<Row> out;
  for (size_t i = 0; i < ops.size(); ++i) {
    out.push_back(ops[i]);
    if (i + 1 == ops.size() || host.lane[ops[i + 1]] != host.lane[ops[i]]) continue;
    std::vector<Row> between;
    for (Row row = ops[i] + 1; row < ops[i + 1]; ++row) {
      if (!is_outermost_op(host, row)) continue;
      const Row detail = model.op_detail(row);
      const int64_t number = detail == kNoRow ? kNoNumber : model.op_details.sequence_number[detail];
      const bool makes_node = number != kNoNumber && number >= 0;
      const bool is_backward = model.text(host.name[row]).starts_with("autograd::");
      if (makes_node || is_backward) {  // another pass begins
        between.clear();
        break;
      }
      between.push_back(row);
    }
    out.insert(out.end(), between.begin(), between.end());
  }
  return out;
}

}  // namespace firelane::advise

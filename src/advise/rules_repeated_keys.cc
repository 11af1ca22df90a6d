// Keys and values that are written out once per query head (grouped-query attention).
//
// The copy is recognized by its source: a dimension with stride 0, for the heads that share one. Attention then reads
// that many times more, so its time scales with the copy where it is bound by memory: few queries, many keys.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/ops/op_tensors.h"

namespace firelane::advise {

namespace {

constexpr int64_t kFewQueries = 16;        // fewer, and attention reads more than it computes
constexpr size_t kLooksForAttention = 24;  // operators, from the copy on

// How often a copy_ writes each element of its source, which has one expanded dimension; 1 of others.
int64_t times_written(const Model& model, Row copy) {
  const Row detail = model.op_detail(copy);
  if (detail == kNoRow || model.op_details.input_strides[detail] == kNoString) return 1;
  const auto dims = analyze::parse_input_dims(input_dims_text(model, copy));
  const auto strides = analyze::parse_input_dims(model.text(model.op_details.input_strides[detail]));
  if (dims.size() < 2 || strides.size() < 2 || dims[1].size() != strides[1].size() || dims[1].size() < 5) return 1;
  int64_t times = 1;
  for (size_t i = 0; i < dims[1].size(); ++i) times *= strides[1][i] == 0 ? std::max<int64_t>(1, dims[1][i]) : 1;
  return times;
}

struct RepeatedKeys {
  Row op = kNoRow;  // outermost, that copies
  int64_t times = 1;
};

class KeysFinder {
 public:
  explicit KeysFinder(const Context& context) : model_(context.model) {
    const HostSlices& host = model_.host_slices;
    const StringId copy = model_.strings.find("aten::copy_");
    if (copy == kNoString) return;
    std::vector<Row> outermost;
    std::vector<int64_t> times;
    for (Row row = 0; row < host.size(); ++row) {
      if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
      if (is_outermost_op(host, row)) {
        outermost.push_back(row);
        times.push_back(1);
      }
      if (host.name[row] == copy && !times.empty()) times.back() = std::max(times.back(), times_written(model_, row));
    }
    for (size_t i = 0; i < outermost.size(); ++i) look_at(outermost, times, i);
  }

  std::vector<RepeatedKeys> copies;
  std::vector<std::pair<Row, double>> attention;  // and what it keeps at best

 private:
  // Attention that takes what the copies before it wrote: as many heads as theirs.
  void look_at(const std::vector<Row>& ops, const std::vector<int64_t>& times, size_t at) {
    const HostSlices& host = model_.host_slices;
    if (model_.text(host.name[ops[at]]) != "aten::scaled_dot_product_attention") return;
    const auto dims = analyze::parse_input_dims(input_dims_text(model_, ops[at]));
    if (dims.size() < 3 || dims[0].size() != 4 || dims[1].size() != 4) return;
    int64_t most = 1;
    for (size_t back = 1; back <= std::min(at, kLooksForAttention); ++back) {
      const size_t before = at - back;
      if (host.lane[ops[before]] != host.lane[ops[at]]) break;
      if (model_.text(host.name[ops[before]]) == "aten::scaled_dot_product_attention") break;
      if (times[before] < 2 || dims[1][1] % times[before] != 0) continue;
      copies.push_back({ops[before], times[before]});
      most = std::max(most, times[before]);
    }
    if (most < 2) return;
    const bool reads_more = dims[0][2] <= kFewQueries;
    attention.emplace_back(ops[at], reads_more ? 1.0 / static_cast<double>(most) : 1.0);
  }

  const Model& model_;
};

std::vector<Finding> find_repeated_keys(const Context& context) {
  const KeysFinder found(context);
  if (found.copies.empty()) return {};
  const Model& model = context.model;
  Evidence evidence(context);
  std::vector<Row> ops;
  int64_t times = 1;
  for (const RepeatedKeys& each : found.copies) {
    ops.push_back(each.op);
    times = std::max(times, each.times);
    if (context.has_device_work) {
      evidence.add_host(each.op, 0.1);
    } else {
      evidence.add_call(each.op, 0.1, 0);
    }
    evidence.add_way_to(each.op);
  }
  if (context.has_device_work) {
    for (const Row work : launched_during(model, ops)) evidence.add_device(work, 0, 0);
  }
  for (const auto& [op, keep] : found.attention) {
    if (keep == 1) continue;
    const double keep_low = (1 + 2 * keep) / 3;
    if (!context.has_device_work) {
      evidence.add_host(op, keep_low, keep);
      continue;
    }
    for (const Row work : context.trace.get<launched_work>().during(op)) evidence.add_beside(work, keep_low, keep);
  }
  if (evidence.empty()) return {};
  Finding finding{
      .id = "repeated-keys",
      .try_text = "share each key head among several query heads: attention accepts fewer key heads than query heads",
      .try_code = "F.scaled_dot_product_attention(q, k, v, enable_gqa=True)  # instead of repeat_interleave",
      .confidence = Confidence::kMedium,
      .confirm_by = "compare results and step times: not every kernel supports grouped heads",
      .cause = "layout-copies",
      .part_of = "fusion",
      .precedence = Precedence::kNeedless};
  evidence.fill(finding);
  finding.events = static_cast<int64_t>(ops.size());
  finding.title = "keys and values are written out " + std::to_string(times) +
                  " times, once per query head: " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> repeated_keys_rules() {
  return {
      {"repeated-keys", "waste", 0.04, true,
       "Grouped-query attention has fewer key and value heads than query heads. Before attention, keys and values\n"
       "are written out once per query head (repeat_interleave, or expand and reshape), which copies the whole\n"
       "cache in every layer, and attention then reads that many times more.\n\n"
       "This finding covers copies from a tensor with an expanded dimension (stride 0) shortly before\n"
       "scaled_dot_product_attention with the same number of heads. Needs shapes. The gain is a replay without the\n"
       "copies; with at most 16 queries, as in decoding, attention gets shorter in proportion as well.\n\n"
       "What to do: enable_gqa=True (torch 2.5 and later); or treat the queries of one group as rows: q.view(b,\n"
       "groups, n, d).\n\n"
       "When not: the kernel in use needs as many key heads as query heads, and others are slower with these sizes.",
       find_repeated_keys},
  };
}

}  // namespace firelane::advise

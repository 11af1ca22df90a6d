// Rows that are added to few others, one after the other; and rows that are taken with brackets.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/op_facts.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "analyze/device/device_peaks.h"
#include "analyze/ops/op_tensors.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

constexpr int64_t kFewRows = 256;          // that something is added to
constexpr int64_t kCrowd = 256;            // so many are added to each, on average
constexpr double kWaitsFor = 2;            // and so many times longer than reading them alone would take
constexpr double kBytesPart = 0.35;        // of a device's bandwidth, that a product with few rows reaches
constexpr double kWorthIt = 0.85;          // what another operator takes, as part of the time
constexpr int64_t kLeastTakenRows = 1000;  // by brackets

struct Crowded {
  int64_t rows = 0;   // that are added to
  int64_t added = 0;  // to them
  double bytes = 0;   // of these
};

// Additions to few rows: self, dim, index, source. scatter_reduce_ may as well take the largest, which no product does:
// a trace does not say.
std::optional<Crowded> crowded_rows(const Model& model, Row op) {
  const std::string_view name = name_of_op(model, op);
  if (name != "aten::index_add_" && name != "aten::scatter_add_") return {};
  const std::vector<analyze::Dims> shapes = shapes_of_op(model, op);
  const std::optional<int64_t> dim = number_of_op(model, op, 1);
  if (shapes.size() < 4 || shapes[0].empty() || shapes[3].size() != shapes[0].size() || !dim) return {};
  const int64_t place = *dim < 0 ? *dim + static_cast<int64_t>(shapes[0].size()) : *dim;
  if (place < 0 || place >= static_cast<int64_t>(shapes[0].size())) return {};
  Crowded found{.rows = shapes[0][static_cast<size_t>(place)], .added = shapes[3][static_cast<size_t>(place)]};
  int64_t bytes = 0;
  for (const analyze::OpTensor& input : analyze::input_tensors(model, op)) {
    if (input.dims == shapes[3]) bytes = std::max(bytes, input.element_bytes);
  }
  found.bytes = elements_of(shapes[3]) * static_cast<double>(std::max<int64_t>(1, bytes));
  if (found.rows <= 0 || found.rows > kFewRows || found.added / found.rows < kCrowd) return {};
  return found;
}

std::vector<Finding> find_contended_scatter(const Context& context) {
  if (context.study == nullptr || !context.has_device_work) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const analyze::DevicePeaks* peaks = analyze::peaks_of(model, 0);
  if (peaks == nullptr || peaks->bandwidth_gb_s <= 0) return {};
  Evidence evidence(context);
  std::vector<Row> ops;
  Crowded most;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    const std::optional<Crowded> found = crowded_rows(model, row);
    if (!found) continue;
    // A product with ones and zeros reads what is added once, and writes a number for each row and each of them first.
    constexpr double kOnesBytes = 6;
    const double ones = kOnesBytes * static_cast<double>(found->rows) * static_cast<double>(found->added);
    const double instead_ns = found->bytes / (kBytesPart * peaks->bandwidth_gb_s) + 2 * ones / peaks->bandwidth_gb_s;
    for (const Row work : context.trace.get<launched_work>().during(row)) {
      const auto ns = static_cast<double>(model.device_slices.duration_ns[work]);
      if (ns < kWaitsFor * instead_ns) continue;
      evidence.add_device(work, std::min(1.0, 1.8 * instead_ns / ns), instead_ns / ns);
      if (ops.empty() || ops.back() != row) ops.push_back(row);
      if (found->bytes > most.bytes) most = *found;
    }
  }
  if (evidence.empty()) return {};
  Finding finding{
      .id = "contended-scatter",
      .try_text = "a product with ones and zeros adds them side by side; or sort them once and add segments",
      .try_code = "sums = (labels == torch.arange(n, device=x.device)[:, None]).to(x.dtype) @ x",
      .confidence = Confidence::kMedium,
      .confirm_by = "compare results and step times",
      .cause = "contended-scatter"};
  evidence.fill(finding);
  finding.events = static_cast<int64_t>(ops.size());
  finding.title = std::string(name_of_op(model, ops[0])) + " adds " + std::to_string(most.added) + " rows to " +
                  std::to_string(most.rows) + ", and atomic additions to the same row wait for each other: " +
                  short_percent(finding.share_of_step) + " of a step";
  add_longest(finding, model, ops);
  return {finding};
}

// x[ids]: one index for whole rows of a matrix.
bool takes_rows(const Model& model, Row op) {
  if (name_of_op(model, op) != "aten::index") return false;
  const std::vector<analyze::Dims> shapes = shapes_of_op(model, op);
  return !shapes.empty() && shapes[0].size() == 2 && shapes[0][1] >= 8;
}
// And its gradient: added to the rows, which may come more than once.
bool adds_rows(const Model& model, Row op) {
  if (name_of_op(model, op) != "aten::_index_put_impl_") return false;
  const std::vector<analyze::Dims> shapes = shapes_of_op(model, op);
  const std::vector<std::string> numbers = numbers_of_op(model, op);
  const bool adds = numbers.size() > 3 && numbers[3] == "True";
  return adds && shapes.size() > 2 && shapes[0].size() == 2 && shapes[2].size() == 2 && shapes[2][1] == shapes[0][1] &&
         shapes[2][0] >= kLeastTakenRows;
}

double median_ns(const Context& context, const std::vector<Row>& ops) {
  if (ops.empty()) return 0;
  std::vector<int64_t> ns;
  for (const Row op : ops) ns.push_back(context.took_ns(op));
  std::nth_element(ns.begin(), ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2), ns.end());
  return static_cast<double>(ns[ns.size() / 2]);
}

// What operators of that name take in this program for the same sizes (of their input `place`, and of the table), as
// part of what `ops` do; 1 when there are none.
double part_of_time(const Context& context, const std::vector<Row>& ops, std::string_view name, size_t place) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  if (ops.empty()) return 1;
  const std::vector<analyze::Dims> own = shapes_of_op(model, ops[0]);
  std::vector<Row> others;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    if (!name_of_op(model, row).starts_with(name) || name_of_op(model, row).ends_with("backward")) continue;
    const std::vector<analyze::Dims> shapes = shapes_of_op(model, row);
    const bool adds = place == 2;
    const bool same = !shapes.empty() && shapes[0] == own[0] &&
                      (!adds || (shapes.size() > 3 && own.size() > 2 && shapes[3] == own[2]));
    if (same) others.push_back(row);
  }
  const double own_ns = median_ns(context, ops);
  return others.empty() || own_ns <= 0 ? 1 : median_ns(context, others) / own_ns;
}

std::vector<Finding> find_index_backward(const Context& context) {
  // On a GPU brackets sort the ids, which is as fast as adding with many duplicates.
  if (context.study == nullptr || context.has_device_work) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::vector<Row> forward;
  std::vector<Row> backward;
  for (Row row = 0; row < host.size(); ++row) {
    if (host.kind[row] != HostKind::kOp || !context.in_window(host.start_ns[row])) continue;
    if (takes_rows(model, row)) forward.push_back(row);
    if (adds_rows(model, row)) backward.push_back(row);
  }
  if (backward.empty()) return {};
  std::set<analyze::Dims> tables;
  for (const Row row : backward) tables.insert(shapes_of_op(model, row)[0]);
  std::erase_if(forward, [&](Row row) { return !tables.contains(shapes_of_op(model, row)[0]); });
  Evidence evidence(context);
  const double taking = part_of_time(context, forward, "aten::index_select", 0);
  const double adding = part_of_time(context, backward, "aten::index_add", 2);
  if (taking >= kWorthIt && adding >= kWorthIt) return {};
  // Others of these shapes may find their rows in a cache: how much less it is varies.
  constexpr double kKeptAtLeast = 0.5;
  const auto add = [&](const std::vector<Row>& rows, double part) {
    if (part >= kWorthIt) return;
    for (const Row row : rows)
      evidence.add_call(row, std::min(1.0, std::max(part, kKeptAtLeast) + 0.25), std::max(part, kKeptAtLeast));
  };
  add(forward, taking);
  add(backward, adding);
  Finding finding{.id = "index-backward",
                  .try_text = "index_select takes whole rows, forward and backward, where brackets go number by number",
                  .try_code = "sent = x.index_select(0, ids)  # instead of x[ids]",
                  .confidence = Confidence::kLow,
                  .confirm_by = "compare step times",
                  .cause = "index-backward"};
  evidence.fill(finding);
  finding.events = static_cast<int64_t>(forward.size() + backward.size());
  const Row longest = *std::max_element(backward.begin(), backward.end(),
                                        [&](Row a, Row b) { return host.duration_ns[a] < host.duration_ns[b]; });
  const analyze::Dims added = shapes_of_op(model, longest)[2];
  finding.title = "rows that are taken by x[ids] (" + std::to_string(added[0]) + " of " + std::to_string(added[1]) +
                  " numbers) and their gradients take " + short_percent(finding.share_of_step) + " of a step, " +
                  counted(std::max<int64_t>(1, context.study->per_step(static_cast<int64_t>(backward.size()))),
                          "gradient", "gradients");
  std::vector<Row> both = forward;
  both.insert(both.end(), backward.begin(), backward.end());
  add_longest(finding, model, both);
  return {finding};
}

}  // namespace

std::vector<Rule> row_indexing_rules() {
  return {
      {"contended-scatter", "kernels", 0.05, true,
       "index_add and scatter_add add with atomic operations on a GPU: what goes to the same row waits for what goes\n"
       "there before it. With thousands of rows for each of a few (sums of classes, of clusters, of experts) that\n"
       "takes many times as long as reading them.\n\n"
       "Found are such additions to at most 256 rows, of 256 and more to each on average, that take at least twice\n"
       "as long as a product would: reading what is added at a third of the device's bandwidth, and writing ones and\n"
       "zeros. Needs shapes, and a device whose bandwidth is known. The gain is a replay with that time.\n\n"
       "What to do: a product with a matrix of ones and zeros; or sort by row once, and torch.segment_reduce.\n\n"
       "When not: labels change in every step and there are hundreds of rows: the ones and zeros get large.",
       find_contended_scatter},
      {"index-backward", "kernels", 0.08, true,
       "On a CPU, x[ids] goes through its result number by number, and so does its gradient, which adds (index_put\n"
       "with accumulate). index_select copies whole rows, and its gradient adds whole rows (index_add).\n\n"
       "Found on CPUs, where the gradient of x[ids] adds a thousand rows and more to a matrix, and the same program\n"
       "has index_select or index_add of the same sizes that are faster (the gradients of each other have them).\n"
       "Needs shapes. The gain is a replay with their time, but at least half of what brackets take. On an H200\n"
       "index_select gained nothing, and nothing is said of GPUs.\n\n"
       "What to do: x.index_select(0, ids), or nn.functional.embedding(ids, x).\n\n"
       "When not: several indices, or a mask.",
       find_index_backward},
  };
}

}  // namespace firelane::advise

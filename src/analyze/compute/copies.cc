#include "analyze/compute/copies.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "analyze/ops/op_tensors.h"
#include "analyze/steps/phases.h"

namespace firelane::analyze {

namespace {

constexpr size_t kPingPongReach = 8;  // casts looked back, on the same thread

bool is_copy_op(std::string_view name) {
  return name == "aten::to" || name == "aten::_to_copy" || name == "aten::contiguous" || name == "aten::clone" ||
         name == "aten::reshape" || name == "aten::copy_" || name == "aten::type_as" || name == "aten::float";
}

struct Done {
  int64_t device_ns = 0;
  int64_t bytes = 0;  // that memcpys moved
  bool to_device = false;
  bool to_host = false;
};

std::string type_text(const OpTensor& tensor) {
  if (tensor.precision != Precision::kUnknown) return std::string(name_of(tensor.precision));
  return std::to_string(tensor.element_bytes * 8) + "-bit";
}

class CopyCollector {
 public:
  explicit CopyCollector(const Model& model) : model_(model), host_(model.host_slices), tensors_(model) {}

  CopyTable run() {
    const DeviceSlices& device = model_.device_slices;
    for (Row row = 0; row < device.size(); ++row) {
      if (!is_device_work(device.kind[row]) || device.op[row] == kNoRow) continue;
      if (copy_ == kNoString || host_.name[device.op[row]] != copy_) continue;
      Done& done = done_[device.op[row]];
      done.device_ns += device.duration_ns[row];
      if (device.kind[row] == DeviceKind::kCopy && device.detail[row] != kNoRow) {
        done.bytes += std::max<int64_t>(0, model_.copy_details.bytes[device.detail[row]]);
      }
      const CopyDirection direction = model_.copy_kinds(row).direction;
      done.to_device = done.to_device || direction == CopyDirection::kHtoD;
      done.to_host = done.to_host || direction == CopyDirection::kDtoH;
    }
    const auto& kinds = device.kind;
    if (std::none_of(kinds.begin(), kinds.end(), is_device_work)) add_copies_of_the_host();
    std::vector<Row> copies;
    for (const auto& [op, done] : done_) copies.push_back(op);
    std::sort(copies.begin(), copies.end());  // by thread, then time
    for (const Row op : copies) add(op, done_[op]);
    std::sort(table_.rows.begin(), table_.rows.end(), [](const CopyRow& a, const CopyRow& b) {
      return a.device_ns != b.device_ns ? a.device_ns > b.device_ns : a.ops.front() < b.ops.front();
    });
    for (const BackwardPair& pair : backward_pairs_) {
      if (!undone_shapes_.contains(pair.shape)) continue;
      table_.ping_pong_ops.insert(table_.ping_pong_ops.end(), {pair.there, pair.back});
    }
    std::vector<Row>& undone = table_.ping_pong_ops;  // there, back and there again: each once
    std::sort(undone.begin(), undone.end());
    undone.erase(std::unique(undone.begin(), undone.end()), undone.end());
    return std::move(table_);
  }

 private:
  void add_copies_of_the_host() {
    if (copy_ == kNoString) return;
    for (Row row = 0; row < host_.size(); ++row) {
      if (host_.name[row] == copy_ && host_.kind[row] == HostKind::kOp) done_[row].device_ns = host_.duration_ns[row];
    }
  }

  void add(Row op, const Done& done) {
    const std::vector<OpTensor>& tensors = tensors_.of(op);
    CopyRow row{.ops = {op}};
    if (tensors.size() >= 2) {
      const OpTensor& to = tensors[0];
      const OpTensor& from = tensors[1];
      row.from = type_text(from);
      row.to = type_text(to);
      row.shape = dims_text({to.dims});
      row.shape = row.shape.substr(1, row.shape.size() - 2);
      row.bytes = to.bytes + from.bytes;
      if (row.from != row.to)
        row.kind = CopyKind::kCast;
      else if (to.dense != from.dense)
        row.kind = CopyKind::kLayout;
    } else {
      ++table_.without_shapes;
      row.bytes = 2 * done.bytes;  // read and written
    }
    if (done.to_device) row.kind = CopyKind::kToDevice;
    if (done.to_host) row.kind = CopyKind::kToHost;
    const Row around = host_.parent[asked_copy(model_, op)];
    if (around != kNoRow && host_.kind[around] == HostKind::kOp) row.asked_by = model_.text(host_.name[around]);
    const std::string key =
        std::to_string(static_cast<int>(row.kind)) + row.from + ">" + row.to + row.shape + row.asked_by;
    const auto [found, is_new] = row_of_.try_emplace(key, table_.rows.size());
    if (is_new) {
      table_.rows.push_back(row);
      table_.rows.back().bytes = 0;
      table_.rows.back().ops.clear();
    }
    CopyRow& sum = table_.rows[found->second];
    ++sum.calls;
    sum.ops.push_back(op);
    sum.bytes += row.bytes;
    sum.device_ns += done.device_ns;
    table_.device_ns += done.device_ns;
    if (row.kind == CopyKind::kCast && is_ping_pong(op, row)) ++sum.ping_pong_calls;
  }

  bool is_ping_pong(Row op, const CopyRow& row) {
    if (host_.lane[op] != lane_) recent_.clear();
    lane_ = host_.lane[op];
    const auto undone = std::find_if(recent_.rbegin(), recent_.rend(), [&](const CopyRow& before) {
      return before.from == row.to && before.to == row.from && before.shape == row.shape;
    });
    const bool found = undone != recent_.rend();
    if (found) {
      if (undone->asked_by.empty() && row.asked_by.empty()) {
        table_.ping_pong_ops.push_back(undone->ops.front());
        table_.ping_pong_ops.push_back(op);
        undone_shapes_.insert(row.shape);
      } else if (is_backward_cast(*undone) && is_backward_cast(row)) {
        backward_pairs_.push_back({undone->ops.front(), op, row.shape});
      }
      recent_.erase(std::next(undone).base());
    }
    recent_.push_back(row);
    if (recent_.size() > kPingPongReach) recent_.pop_front();
    return found;
  }

  // For a cast by the program, or by autocast: only the forward pass distinguishes them.
  static bool is_backward_cast(const CopyRow& row) { return row.asked_by == "ToCopyBackward0"; }

  struct BackwardPair {
    Row there, back;
    std::string shape;
  };

  const Model& model_;
  const HostSlices& host_;
  InputTensors tensors_;
  const StringId copy_ = model_.strings.find("aten::copy_");
  std::vector<BackwardPair> backward_pairs_;
  std::unordered_set<std::string> undone_shapes_;  // of casts there and back in the forward pass
  std::unordered_map<Row, Done> done_;
  std::unordered_map<std::string, size_t> row_of_;
  std::deque<CopyRow> recent_;
  LaneId lane_{UINT32_MAX};
  CopyTable table_;
};

}  // namespace

std::string_view name_of(CopyKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"cast", "layout", "plain", "to device", "to host"};
  return kNames[static_cast<size_t>(kind)];
}

CopyTable copy_table(const Model& model) { return CopyCollector(model).run(); }

Row asked_copy(const Model& model, Row copy) {
  const HostSlices& host = model.host_slices;
  Row asked = copy;
  for (Row row = host.parent[copy]; row != kNoRow && is_copy_op(model.text(host.name[row])); row = host.parent[row]) {
    asked = row;
  }
  return asked;
}

}  // namespace firelane::analyze

#include "analyze/ops/ops_stacks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/hash.h"

namespace firelane::analyze {

namespace {

// Frames of autograd's own entry and of torch's test helpers, which torch hides too.
bool is_hidden_frame(std::string_view frame) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kHidden = {{
      {"autograd/__init__", "_make_grads"},
      {"autograd/__init__", "backward"},
      {"torch/tensor", "backward"},
      {"_internal/common_utils", "prof_callable"},
      {"_internal/common_utils", "prof_func_call"},
      {"_internal/common_utils", "prof_meth_call"},
  }};
  for (const auto& [file, function] : kHidden)
    if (frame.find(file) != std::string_view::npos && frame.find(function) != std::string_view::npos) return true;
  return false;
}

}  // namespace

bool is_backward_function(const Model& model, Row row) {
  if (model.host_slices.kind[row] != HostKind::kOp) return false;
  const Row detail = model.op_detail(row);
  if (detail == kNoRow) return false;
  const std::string_view name = model.text(model.host_slices.name[row]);
  if (name == "torch::autograd::AccumulateGrad") return true;
  const OpDetails& ops = model.op_details;
  return ops.sequence_number[detail] >= 0 && ops.forward_thread[detail] > 0 &&
         model.host_slices.role[row] != HostRole::kBackwardNode;
}

OpsStacks::OpsStacks(const Model& model, uint32_t frames)
    : model_(model), frames_(frames), stacks_(1), shown_(model.strings.size()), named_(256) {}

uint32_t OpsStacks::of_host(Row row, Row backward) {
  if (backward != kNoRow) {
    row = model_.op_details.forward[model_.op_detail(backward)];
    if (row == kNoRow) return kNone;
  }
  const HostKind kind = model_.host_slices.kind[row];
  if (kind == HostKind::kOp || kind == HostKind::kAnnotation) {
    const Row detail = model_.op_detail(row);
    if (detail != kNoRow && model_.op_details.stack[detail] != kNoString)
      return of_text(model_.op_details.stack[detail]);
  }
  const uint32_t stack = of_slices(row);
  if (stack != kNone || !is_call(kind)) return stack;
  // A call on a thread without Python (autograd's): its op may know.
  const Row detail = model_.call_detail(row);
  const Row op = detail == kNoRow ? kNoRow : model_.call_details.op[detail];
  return op == kNoRow ? kNone : of_host(op, kNoRow);
}

uint32_t OpsStacks::of_device(Row row) {
  const DeviceSlices& device = model_.device_slices;
  if (device.kind[row] == DeviceKind::kAnnotation) return kNone;
  if (device.launch[row] != kNoRow) {
    const uint32_t stack = of_slices(device.launch[row]);
    if (stack != kNone) return stack;
  }
  return device.op[row] == kNoRow ? kNone : of_host(device.op[row], kNoRow);
}

uint32_t OpsStacks::of_text(StringId text) {
  const auto [at, is_new] = id_of_text_.try_emplace(static_cast<uint32_t>(text), kNone);
  if (!is_new) return at->second;
  std::vector<std::string> frames;
  std::string_view rest = model_.text(text);
  while (!rest.empty() && frames.size() < frames_) {
    const size_t cut = rest.find(';');
    const std::string_view frame = rest.substr(0, cut);
    if (!is_hidden_frame(frame)) frames.emplace_back(frame);
    rest = cut == std::string_view::npos ? std::string_view() : rest.substr(cut + 1);
  }
  at->second = intern(std::move(frames));
  return at->second;
}

Row OpsStacks::python_above(Row row) {
  const HostSlices& host = model_.host_slices;
  for (row = host.parent[row]; row != kNoRow; row = host.parent[row])
    if (host.kind[row] == HostKind::kPython && is_shown(host.name[row])) return row;
  return kNoRow;
}

uint32_t OpsStacks::of_slices(Row row) {
  const Row innermost = python_above(row);
  if (innermost == kNoRow) return kNone;
  wanted_.clear();
  uint64_t hash = 0;
  for (Row at = innermost; at != kNoRow && wanted_.size() < frames_; at = python_above(at)) {
    wanted_.push_back(model_.host_slices.name[at]);
    hash = mix_hash(hash, static_cast<uint32_t>(wanted_.back()));
  }
  NamedStack& known = find_named(hash);
  if (known.stack != kUnknown) return known.stack;
  std::vector<std::string> frames;
  for (const StringId name : wanted_) frames.emplace_back(model_.text(name));
  const uint32_t stack = intern(std::move(frames));
  known = {hash, stack, static_cast<uint32_t>(wanted_.size()), names_.size()};
  names_.insert(names_.end(), wanted_.begin(), wanted_.end());
  if (++named_count_ * 2 > named_.size()) {
    std::vector<NamedStack> old(named_.size() * 2);
    old.swap(named_);
    for (const NamedStack& entry : old) {
      if (entry.stack == kUnknown) continue;
      size_t at = entry.hash & (named_.size() - 1);
      while (named_[at].stack != kUnknown) at = (at + 1) & (named_.size() - 1);
      named_[at] = entry;
    }
  }
  return stack;
}

// The stack of the frames in wanted_, or the free place where it belongs.
OpsStacks::NamedStack& OpsStacks::find_named(uint64_t hash) {
  size_t at = hash & (named_.size() - 1);
  for (; named_[at].stack != kUnknown; at = (at + 1) & (named_.size() - 1)) {
    const NamedStack& entry = named_[at];
    if (entry.hash == hash && entry.depth == wanted_.size() &&
        std::equal(wanted_.begin(), wanted_.end(), names_.begin() + static_cast<ptrdiff_t>(entry.names)))
      break;
  }
  return named_[at];
}

uint32_t OpsStacks::intern(std::vector<std::string> frames) {
  if (frames.empty()) return kNone;
  std::string joined;
  for (const std::string& frame : frames) (joined += frame) += '\n';
  const auto [at, is_new] = id_of_.try_emplace(std::move(joined), static_cast<uint32_t>(stacks_.size()));
  if (is_new) stacks_.push_back(std::move(frames));
  return at->second;
}

bool OpsStacks::is_shown(StringId name) {
  uint8_t& shown = shown_[static_cast<uint32_t>(name)];
  if (shown == 0) shown = is_hidden_frame(model_.text(name)) ? 1 : 2;
  return shown == 2;
}

}  // namespace firelane::analyze

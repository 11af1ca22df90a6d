// Finds where a program writes a checkpoint: a rank that does so alone lets all others wait.
//
// `firelane record` marks torch.save(). Traces with Python functions have the functions themselves: torch.save(),
// torch.distributed.checkpoint, safetensors, and what trainers call save_checkpoint(). Activation checkpointing
// (torch.utils.checkpoint) is computing, and none of these.
#include <string_view>
#include <unordered_map>

#include "ranks/part/map_pieces.h"

namespace firelane::ranks {

namespace {

// "torch/serialization.py(941): save" and names of ranges: "torch.save".
bool writes_checkpoint(std::string_view name) {
  if (name == "torch.save" || name.find("save_checkpoint") != std::string_view::npos) return true;
  const size_t mark = name.rfind("): ");
  if (mark == std::string_view::npos) return false;
  const std::string_view function = name.substr(mark + 3);
  const std::string_view file = name.substr(0, name.rfind('(', mark));
  if (file.ends_with("torch/serialization.py")) return function == "save";
  if (file.find("torch/distributed/checkpoint/") != std::string_view::npos) {
    return function == "save" || function == "async_save" || function == "save_state_dict";
  }
  return file.ends_with("safetensors/torch.py") && (function == "save_file" || function == "save_model");
}

}  // namespace

std::vector<analyze::Interval> find_checkpoints(const Model& model, const analyze::HostTime& host) {
  std::vector<analyze::Interval> out;
  if (host.chains.empty()) return out;
  const HostSlices& slices = model.host_slices;
  std::unordered_map<uint32_t, bool> known;  // by name
  const auto writes = [&](Row row) {
    if (slices.kind[row] != HostKind::kPython && slices.kind[row] != HostKind::kAnnotation) return false;
    const auto [at, is_new] = known.try_emplace(static_cast<uint32_t>(slices.name[row]), false);
    if (is_new) at->second = writes_checkpoint(model.text(slices.name[row]));
    return at->second;
  };
  analyze::each_outermost(model, host.chains[0], writes,
                          [&](Row row) { out.push_back({slices.start_ns[row], slices.end_ns(row)}); });
  return out;
}

}  // namespace firelane::ranks

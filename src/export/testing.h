// What tests of round trips compare.
#pragma once

#include <map>
#include <string>

#include "model/model.h"

namespace firelane::exporter {

// Whether streams, launches and operators are compared too.
enum class Links : uint8_t { kKept, kLost };

// Every slice with what it is linked to, as text, and how often it comes.
inline std::map<std::string, int> slices_of(const Model& m, Links links = Links::kKept) {
  std::map<std::string, int> out;
  const int64_t start = m.info.start_ns;
  const auto host_name = [&](Row row) {
    return row == kNoRow ? std::string("-") : std::string(m.text(m.host_slices.name[row]));
  };
  // c10d's own range (nccl:all_gather) lies in the operator that it serves, and has the same id in an export.
  const auto operator_of = [&](Row row) {
    while (row != kNoRow && m.text(m.host_slices.name[row]).starts_with("nccl:")) row = m.host_slices.parent[row];
    return row;
  };
  for (Row row = 0; row < m.host_slices.size(); ++row) {
    ++out["host " + std::string(m.text(m.host_slices.name[row])) + " " + std::string(name_of(m.host_slices.kind[row])) +
          " " + std::to_string(start + m.host_slices.start_ns[row]) + " " +
          std::to_string(m.host_slices.duration_ns[row])];
  }
  for (Row row = 0; row < m.device_slices.size(); ++row) {
    const DeviceSlices& d = m.device_slices;
    std::string text = "device " + std::string(m.text(d.name[row])) + " " + std::string(name_of(d.kind[row])) + " " +
                       std::to_string(start + d.start_ns[row]) + " " + std::to_string(d.duration_ns[row]);
    if (links == Links::kKept) {
      text += " stream " + std::to_string(d.stream[row]) + " of " + std::to_string(d.device[row]) + " by " +
              host_name(d.launch[row]) + " in " + host_name(operator_of(d.op[row]));
    }
    ++out[text];
  }
  return out;
}

}  // namespace firelane::exporter

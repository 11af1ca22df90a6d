// XPlane files (.xplane.pb): what JAX, TensorFlow and PyTorch/XLA record on TPUs and GPUs.
//
// A plane is a host or a device, a line of it a thread, a stream or a view of the device. Only lines that hold work
// become work: "XLA Ops", "Async XLA Ops" and streams. "Steps", "XLA Modules", name scopes and the like are derived
// from them, and are kept as annotations. What becomes what: docs/formats/xplane.md.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "import/reader.h"
#include "model/raw.h"

namespace firelane::importer {

// By the structure of the first bytes: a plane with its id or name in front.
bool is_xplane(std::string_view begin);

// The files of one run, one a host, in order. Devices are numbered on from host to host.
struct XPlaneFile {
  ReadRequest request;
  std::unique_ptr<ByteSource> content;
};
Result<RawTrace> read_xplane(std::span<const XPlaneFile> hosts);

Reader xplane_reader();

}  // namespace firelane::importer

// Every export by its name: what `firelane export --to NAME` and Trace.export(to=NAME) share.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "export/byte_sink.h"
#include "export/place.h"
#include "model/model.h"

namespace firelane::exporter {

inline constexpr std::array<std::string_view, 6> kExportFormats = {"chrome", "perfetto", "speedscope",
                                                                   "stacks", "csv",      "json"};
inline constexpr std::array<std::string_view, 2> kStackMetrics = {"self_cpu", "self_device"};

struct ExportOptions {
  std::string format;               // one of kExportFormats
  std::string table;                // csv: which table of model/catalog.h
  std::string metric = "self_cpu";  // stacks: one of kStackMetrics
  bool gzip = false;
  std::string file;    // the name of the file that it goes to; Kineto's Chrome traces hold theirs
  TorchRules torch{};  // chrome
};

// Whether the options fit together; says what is wrong with them otherwise.
Result<void> check_export(const ExportOptions& options);

// A failed write stays with the sink. REQUIRES: check_export() found nothing.
Result<void> export_trace(const Model& model, const ExportOptions& options, ByteSink& sink);

}  // namespace firelane::exporter

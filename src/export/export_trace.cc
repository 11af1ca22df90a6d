#include "export/export_trace.h"

#include <algorithm>

#include "export/chrome.h"
#include "export/gzip_sink.h"
#include "export/perfetto.h"
#include "export/speedscope.h"
#include "export/stacks.h"
#include "export/table_files.h"
#include "model/catalog.h"

namespace firelane::exporter {

namespace {

template <typename List>
std::string joined(const List& list) {
  std::string out;
  for (const std::string_view name : list) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

Result<void> write_format(const Model& model, const ExportOptions& options, ByteSink& sink) {
  if (options.format == "chrome") return export_chrome(model, sink, {.file = options.file, .torch = options.torch});
  if (options.format == "perfetto") export_perfetto(model, sink);
  if (options.format == "speedscope") export_speedscope(model, sink);
  if (options.format == "stacks") {
    export_stacks(model, options.metric == "self_cpu" ? StackMetric::kSelfHost : StackMetric::kSelfDevice, sink);
  }
  if (options.format == "csv") export_csv(model, *find_catalog_table(options.table), sink);
  if (options.format == "json") export_json(model, sink);
  return {};
}

}  // namespace

Result<void> check_export(const ExportOptions& options) {
  if (std::ranges::find(kExportFormats, options.format) == kExportFormats.end()) {
    return Error{"no export is called '" + options.format + "'; there are " + joined(kExportFormats)};
  }
  if (std::ranges::find(kStackMetrics, options.metric) == kStackMetrics.end()) {
    return Error{"no metric is called '" + options.metric + "'; there are " + joined(kStackMetrics)};
  }
  if (options.format == "csv" && options.table.empty()) return Error{"csv needs a table, such as host_slices"};
  if (!options.table.empty() && find_catalog_table(options.table) == nullptr) {
    return Error{"no table is called '" + options.table + "'"};
  }
  return {};
}

Result<void> export_trace(const Model& model, const ExportOptions& options, ByteSink& sink) {
  if (!options.gzip) return write_format(model, options, sink);
  GzipSink gzip(sink);
  FL_TRY_VOID(write_format(model, options, gzip));
  gzip.finish();
  return {};
}

}  // namespace firelane::exporter

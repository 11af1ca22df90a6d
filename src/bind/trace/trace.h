// firelane.Trace: one open trace, its tables and the answers of the CLI's verbs.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/result.h"
#include "export/arrow_tables.h"
#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::bind_trace {

// Becomes firelane.TraceError. The only exception of ours: everything below returns Result.
struct TraceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Trace {
  explicit Trace(Model loaded)
      : studied(std::make_shared<const StudiedTrace>(std::move(loaded))),
        model(studied->shared_model()),
        tables(std::make_unique<exporter::ArrowTables>(model)) {}

  std::shared_ptr<const StudiedTrace> studied;
  std::shared_ptr<const Model> model;  // of `studied`
  std::unique_ptr<exporter::ArrowTables> tables;
};

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) throw TraceError(result.error().message);
  return std::move(result).value();
}

nanobind::object parse_json(const std::string& text);

void bind_trace(nanobind::module_& module);

}  // namespace firelane::bind_trace

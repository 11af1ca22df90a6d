// A verb's output as the sink of an export.
#pragma once

#include <string_view>

#include "cli/output.h"
#include "export/byte_sink.h"

namespace firelane::cli {

// The first failure is kept for the end.
class OutputSink : public exporter::ByteSink {
 public:
  explicit OutputSink(Output& output) : output_(output) {}
  void write(std::string_view bytes) override {
    if (result_.ok()) result_ = output_.write(bytes);
  }
  bool failed() const override { return !result_.ok(); }
  const Result<void>& result() const { return result_; }

 private:
  Output& output_;
  Result<void> result_;
};

}  // namespace firelane::cli

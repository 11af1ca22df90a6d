// Compresses what is written to it (gzip, ISA-L's fast deflate) into another sink.
#pragma once

#include <memory>

#include "export/byte_sink.h"

namespace firelane::exporter {

class GzipSink : public ByteSink {
 public:
  explicit GzipSink(ByteSink& out);
  ~GzipSink() override;
  void write(std::string_view bytes) override;
  bool failed() const override { return out_.failed(); }
  // Writes the end of the stream. REQUIRES: called once, after the last write().
  void finish();

 private:
  void deflate(std::string_view bytes, bool last);

  struct State;
  ByteSink& out_;
  std::unique_ptr<State> state_;
};

}  // namespace firelane::exporter

#include "export/lane_file.h"

#include "base/hash.h"
#include "export/chrome.h"
#include "export/lane_tables.h"
#include "format/chunk.h"

namespace firelane::exporter {

namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;
constexpr int kZstdLevel = 3;

// The chunks' bytes on their way to the export's sink.
class ChunkSink : public format::ByteSink {
 public:
  explicit ChunkSink(exporter::ByteSink& sink) : sink_(sink) {}
  std::string write(std::string_view bytes) override {
    sink_.write(bytes);
    return sink_.failed() ? "write failed" : "";
  }
  std::string name() const override { return "export"; }

 private:
  exporter::ByteSink& sink_;
};

// Text into chunks of a bounded size.
class PieceSink : public exporter::ByteSink {
 public:
  explicit PieceSink(format::ChunkWriter& writer) : writer_(writer) {}
  void write(std::string_view bytes) override {
    piece_ += bytes;
    if (piece_.size() >= kPieceBytes) flush();
  }
  bool failed() const override { return !error_.empty(); }
  void flush() {
    for (size_t at = 0; at < piece_.size() && error_.empty(); at += kPieceBytes)
      error_ = writer_.write_chunk(format::ChunkKind::kTrace, std::string_view(piece_).substr(at, kPieceBytes));
    piece_.clear();
  }

 private:
  format::ChunkWriter& writer_;
  std::string piece_;
  std::string error_;
};

}  // namespace

Result<void> export_lane(const Model& model, ByteSink& sink) {
  if (model.info.origin == Origin::kFirelane) return Error{model.info.path + ": a .lane file already"};
  ChunkSink out(sink);
  format::ChunkWriter writer(out, kZstdLevel);
  PieceSink pieces(writer);
  // The id says that two files hold the same trace: it depends on nothing else.
  const uint64_t id = mix_hash(static_cast<uint64_t>(model.info.start_ns), model.info.event_count);
  if (!writer.write_header(id).empty()) return {};  // the sink knows why
  FL_TRY_VOID(export_chrome(model, pieces, {.without_memory = memory_is_a_table(model)}));
  pieces.flush();
  if (!pieces.failed() && write_lane_tables(model, writer).empty()) (void)writer.finish(model.info.event_count);
  return {};
}

}  // namespace firelane::exporter

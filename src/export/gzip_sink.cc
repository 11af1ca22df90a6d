#include "export/gzip_sink.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <climits>
#include <vector>

#include "base/check.h"

namespace firelane::exporter {

struct GzipSink::State {
  isal_zstream stream{};
  std::vector<uint8_t> level_buffer = std::vector<uint8_t>(ISAL_DEF_LVL2_DEFAULT);
  std::array<uint8_t, 1 << 16> out{};
};

GzipSink::GzipSink(ByteSink& out) : out_(out), state_(std::make_unique<State>()) {
  isal_zstream& stream = state_->stream;
  isal_deflate_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.level = 2;
  stream.level_buf = state_->level_buffer.data();
  stream.level_buf_size = static_cast<uint32_t>(state_->level_buffer.size());
}

GzipSink::~GzipSink() = default;

void GzipSink::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, INT_MAX);
    deflate(piece, false);
    bytes.remove_prefix(piece.size());
  }
}

void GzipSink::finish() { deflate({}, true); }

void GzipSink::deflate(std::string_view bytes, bool last) {
  isal_zstream& stream = state_->stream;
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));  // read only, but not const in C
  stream.avail_in = static_cast<uint32_t>(bytes.size());
  stream.end_of_stream = last ? 1 : 0;
  do {
    stream.next_out = state_->out.data();
    stream.avail_out = static_cast<uint32_t>(state_->out.size());
    FL_CHECK(isal_deflate(&stream) == COMP_OK, "deflate takes any bytes");
    const size_t made = state_->out.size() - stream.avail_out;
    out_.write({reinterpret_cast<const char*>(state_->out.data()), made});
  } while (stream.avail_out == 0);
}

}  // namespace firelane::exporter

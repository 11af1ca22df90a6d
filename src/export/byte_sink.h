// Where the bytes of an export go. A failed write is kept by the sink and does not stop the
// writer at once: exporters ask failed() now and then, and whoever owns the sink reports it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace firelane::exporter {

// Exporters collect about this much before they write.
inline constexpr size_t kFlushBytes = size_t{1} << 18;

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(std::string_view bytes) = 0;
  virtual bool failed() const { return false; }
};

class StringSink : public ByteSink {
 public:
  void write(std::string_view bytes) override { text += bytes; }
  std::string text;
};

}  // namespace firelane::exporter

// Where bytes come from: a file, memory, or either of them inflated. Sequential reading
// for the load, reading at a place later on, to show the args of an event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "model/stats.h"

namespace firelane::importer {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Reads up to `size` bytes from where the last read ended; fewer only at the end. What
  // goes wrong in the middle (damaged gzip, a failing disk) ends the source early and is
  // counted in losses(). One thread at a time.
  virtual size_t read(char* out, size_t size) = 0;

  // Reads at a place that read() has passed; fewer bytes only at the end. Thread-safe.
  virtual Result<size_t> read_at(uint64_t offset, char* out, size_t size) const = 0;

  // Bytes of the file consumed so far and in all, for a progress bar.
  virtual uint64_t consumed_bytes() const = 0;
  virtual uint64_t total_bytes() const = 0;

  // An error that makes the whole load pointless (a decompression bomb); empty = none.
  virtual const std::string& fatal() const;

  const LossCounts& losses() const { return losses_; }

 protected:
  LossCounts losses_;
};

// "-" is standard input, copied to an unnamed temporary file. A directory, a missing or an
// unreadable file is an error.
Result<std::unique_ptr<ByteSource>> open_file(const std::string& path);
std::unique_ptr<ByteSource> open_memory(std::string bytes);

}  // namespace firelane::importer

// A file that appears under its name when it is complete: written beside it, then moved. Raises TraceError.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "bind/trace/trace.h"
#include "export/byte_sink.h"

namespace firelane::bind_trace {

class FileSink : public exporter::ByteSink {
 public:
  // An existing file is replaced only with `force`.
  FileSink(const std::filesystem::path& path, bool force) : path_(path), partial_(path.string() + ".part") {
    if (!force && std::filesystem::exists(path)) {
      throw TraceError(path.string() + " exists; pass force=True to replace it, or another name");
    }
    file_ = std::fopen(partial_.c_str(), "wb");
    if (!file_) raise();
  }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  ~FileSink() override {
    if (file_) std::fclose(file_);
    if (!partial_.empty()) std::remove(partial_.c_str());
  }
  void write(std::string_view bytes) override {
    if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) error_ = errno;
  }
  bool failed() const override { return error_ != 0; }

  void finish() {
    if (std::fclose(std::exchange(file_, nullptr)) != 0 && error_ == 0) error_ = errno;
    if (error_ == 0 && std::rename(partial_.c_str(), path_.c_str()) != 0) error_ = errno;
    if (error_ != 0) raise();
    partial_.clear();
  }

 private:
  [[noreturn]] void raise() const {
    throw TraceError(path_.string() + ": cannot be written: " + std::strerror(error_ != 0 ? error_ : errno));
  }

  std::filesystem::path path_;
  std::string partial_;
  std::FILE* file_ = nullptr;
  int error_ = 0;
};

}  // namespace firelane::bind_trace

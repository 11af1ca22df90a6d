// What the recorder's tests share: a folder that goes away, ops by one call, files as text.
#pragma once

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "format/dump.h"
#include "record/core/session.h"
#include "record/core/thread_buffer.h"

namespace firelane::record::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "firelane-test-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::unique_ptr<Session> start(const RecordOptions& options) {
  auto session = Session::start(options);
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n", session.error().message.c_str());
    std::abort();
  }
  return std::move(session).value();
}

inline void begin(std::string_view name) {
  if (ThreadBuffer* b = recording_thread_for_begin()) b->begin(now_ticks(), b->text(name), format::Scope::kFunction);
}
inline void end() {
  if (ThreadBuffer* b = recording_thread_for_end()) b->end(now_ticks(), format::ScopeGroup::kOp);
}
inline void op(std::string_view name) {
  begin(name);
  end();
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string records_of(const std::filesystem::path& path, const format::DumpOptions& options) {
  auto text = format::dump_lane(read_file(path), path.string(), options);
  return text.ok() ? text.value() : text.error().message;
}

// How often a word stands in a text.
inline size_t count(const std::string& text, std::string_view word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

}  // namespace firelane::record::test

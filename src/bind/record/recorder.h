// One recording as Python sees it: torch's hooks, Python's hooks and the session behind both.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <string>

#include "record/core/session.h"
#include "record/library/library.h"

namespace firelane::bind_record {

// All methods need the GIL; they release it while they wait for the disk.
class PythonRecorder {
 public:
  // Throws std::runtime_error if a recording is running already.
  explicit PythonRecorder(const record::RecordOptions& options);
  ~PythonRecorder();
  PythonRecorder(const PythonRecorder&) = delete;
  PythonRecorder& operator=(const PythonRecorder&) = delete;

  void pause() noexcept;
  void resume() noexcept;
  void begin_full() noexcept;
  void pause_device() noexcept;
  void resume_device() noexcept;
  void stop_device() noexcept;
  void stop() noexcept;
  // Throws std::runtime_error, which Python sees as an OSError.
  void save(const std::string& path);

  library::Recording& recording() noexcept { return *recording_; }
  int64_t start_unix_ns() const noexcept { return start_unix_ns_; }

 private:
  record::RecordOptions options_;
  std::unique_ptr<library::Recording> recording_;
  int64_t start_unix_ns_ = 0;
  bool light_ = false;
  void hook_python() noexcept;
};

// In a forked child: removes Python's hooks; torch's are removed by the child's first op.
void after_fork_in_child() noexcept;

}  // namespace firelane::bind_record

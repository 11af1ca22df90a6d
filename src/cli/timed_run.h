// Runs of a program whose steps are timed and not recorded, with settings applied inside of it that it knows nothing
// about: what `firelane verify` and `firelane tune` are made of. python/firelane/_verify.py is the part in the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "compare/sweep/tune.h"

namespace firelane::cli {

// A folder that is gone with this object.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create(const std::string& verb);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  std::filesystem::path file(const std::string& name) const { return std::filesystem::path(path_) / name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct TimedPlan {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string setting;                                     // id of a finding; "" none
  std::vector<std::pair<std::string, std::string>> knobs;  // "workers" and its value: see KNOBS in _verify.py
  int64_t steps = 30;
  int64_t warmup = 5;
};

// A program that ends without timed steps has failed, and `failure` says why. `name`: of the run's files in `folder`.
// REQUIRES: put_site_on_python_path() was called.
Result<compare::TimedRun> run_timed(const TimedPlan& plan, const TemporaryFolder& folder, const std::string& name);

// `firelane record` of a command that times most of its steps, records a few and then ends: a run to compare with
// others. `flags`: further ones of `firelane record`.
std::vector<std::string> record_run_command(const std::string& trace, int64_t steps, int64_t recorded,
                                            const std::vector<std::string>& command,
                                            const std::vector<std::string>& flags = {});

}  // namespace firelane::cli

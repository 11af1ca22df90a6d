// What Kineto's Chrome traces have beside events, and tools that read them look for: numbers of Python frames, the
// index of each event, the span and the marks of the recording. For our own recordings only: other traces have theirs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/chrome_events.h"
#include "export/place.h"
#include "model/model.h"

namespace firelane::exporter {

class KinetoExtras {
 public:
  explicit KinetoExtras(const Model& model, TorchRules rules = {});

  bool is_wanted() const { return is_wanted_; }
  // Whether torch.profiler would not write this host slice.
  bool is_left_out(Row row) const { return !rules_.has_collections && is_collection(row); }
  // The name that Kineto gives to a host slice.
  std::string_view host_name(Row row) const;
  // A name as it is written: the text itself, or `buffer`.
  std::string_view written(std::string_view name, std::string& buffer) const;
  bool has_plain_texts() const { return rules_.plain_texts; }
  // Start and duration; those of steps are as adjust_profiler_step wants them, if it was asked for.
  std::pair<int64_t, int64_t> host_times(Row row) const;
  // "Python id", "Python parent id", "Python module id", "Ev Idx", and "Call stack" if it was asked for, to an object
  // under construction: "{" and maybe pairs. CUPTI's records have none of them.
  void add_host_args(Row row, std::string& args) const;
  void add_memory_args(Row row, std::string& args) const;
  // For a Python frame, as in its args; -1: none.
  struct PythonIds {
    int64_t own = -1;
    int64_t parent = -1;
    int64_t module = -1;
  };
  PythonIds python_ids(Row row) const;
  // The span of the recording and the marks at its ends.
  void write_window(ChromeEvents& events) const;
  // `, "traceName": "run.json"`: the file's last pair. Empty where it is not wanted.
  std::string file_pair(std::string_view file) const;

 private:
  bool is_collection(Row row) const;
  bool has_python_id(Row row) const { return !python_ids_.empty() && python_ids_[row] != 0; }
  void add_python_ids(Row row, std::string& args) const;
  void add_call_stack(Row row, std::string& args) const;

  const Model& model_;
  bool is_wanted_;
  TorchRules rules_;  // none for others' traces
  bool adjusts_steps_;
  bool has_call_stacks_;
  std::vector<uint32_t> python_ids_;  // per host slice; 0: no Python frame. Empty without frames
};

// All args of an op or range of ours as Kineto writes them, without braces: what torch calls metadata_json.
std::string host_metadata_json(const Model& model, const KinetoExtras& kineto, Row row);

// "cpu_op", "kernel": the category in a Chrome trace.
std::string_view host_activity_type(const Model& model, Row row);
std::string_view device_activity_type(const Model& model, Row row);

}  // namespace firelane::exporter

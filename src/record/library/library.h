// The line between what depends on torch and what depends on Python.
//
// The recorder with its hooks into torch is a shared library of its own, one for each version of torch
// (recorders/torch_2_11.so), which knows nothing of Python. The Python module is compiled once for each version of
// Python and sees only this header and record/core's buffers. python/firelane/_record.py loads the library that fits
// the running torch; the module then finds it by its SONAME.
//
// Only plain numbers, std::string_view and std::vector of plain structs cross the line: torch 2.6's wheels, and so the
// library for them, have the old layout of std::string. Texts come back through Text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "format/layout.h"
#include "format/record_options.h"
#include "record/core/call_lines.h"
#include "record/core/parts.h"
#include "record/core/steps.h"

namespace firelane::library {

// Changes with anything that crosses the line, this header and record/core/thread_buffer.h: what does not fit is
// refused.
inline constexpr uint32_t kInterface = 5;

// Takes texts, one after the other.
class Text {
 public:
  virtual void take(std::string_view text, double number) = 0;

 protected:
  ~Text() = default;
};

// record::RecordOptions, without what needs a std::string.
struct Options {
#define FL_FIELD(name, on, key, help) bool name = on;
  FL_RECORD_OPTIONS(FL_FIELD)
#undef FL_FIELD
  bool flops = false;
  bool cuda_detach = true;
  bool concrete_inputs = true;
  bool tensors = false;
  record::Parts parts;
  record::CallLines call_lines;
  bool start_paused = false;
  bool start_light = false;
  bool keep = false;
  uint64_t metric_interval_ns = 1'000'000;
  std::string_view metric_names;
  std::string_view output;
  std::string_view torch_version;  // of the torch that runs: a library serves all patch releases of its minor version
  double (*python_cost)() = nullptr;  // measures what a traced Python call costs; null: not traced
  double (*line_cost)() = nullptr;    // and what it costs to ask for an operator's line
};

// Those that Options and record::RecordOptions both have, from one to the other: for both sides of the library's line.
template <typename From, typename To>
void copy_options(const From& from, To& to) {
#define FL_COPY(name, on, key, help) to.name = from.name;
  FL_RECORD_OPTIONS(FL_COPY)
#undef FL_COPY
  to.metric_interval_ns = from.metric_interval_ns;
  to.flops = from.flops;
  to.cuda_detach = from.cuda_detach;
  to.concrete_inputs = from.concrete_inputs;
  to.tensors = from.tensors;
  to.parts = from.parts;
  to.call_lines = from.call_lines;
  to.start_paused = from.start_paused;
  to.start_light = from.start_light;
  to.keep = from.keep;
}

struct Status {
  uint8_t state = 0;  // record::SessionState
  uint64_t event_count = 0;
  uint64_t dropped_count = 0;
  uint64_t file_bytes = 0;
  uint64_t in_flight_bytes = 0;
  uint32_t thread_count = 0;
};

// torch_hooks::TorchStepTimer.
class StepTimer {
 public:
  virtual ~StepTimer() = default;
  virtual void step(int64_t number, format::StepPhase phase) noexcept = 0;
  virtual void raise_phase(format::StepPhase phase) noexcept = 0;
  virtual void finish() noexcept = 0;
  virtual const std::vector<record::StepSample>& samples() const noexcept = 0;
  virtual std::vector<record::StepSample> take() noexcept = 0;
};

// One at::RecordFunction after the other.
class Op {
 public:
  virtual ~Op() = default;
  virtual bool begin() = 0;  // false: nobody records it
  virtual void end() noexcept = 0;
};

// torch_hooks::Recording and its session. Stops when it is destroyed.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void pause() noexcept = 0;
  virtual void resume() noexcept = 0;
  virtual void begin_full() noexcept = 0;
  virtual void pause_device() noexcept = 0;
  virtual void resume_device() noexcept = 0;
  virtual void stop_device() noexcept = 0;
  virtual void stop() noexcept = 0;
  virtual bool is_stopped() const noexcept = 0;

  // False with the reason in `error`.
  virtual bool save(std::string_view path, Text& error) = 0;
  virtual void path(Text& out) const = 0;
  virtual Status status() const = 0;
  virtual void losses(Text& out) const = 0;  // reason, count
  virtual void add_metadata(std::string_view key, std::string_view json) noexcept = 0;
  virtual void add_steps(const std::vector<record::StepSample>& steps) noexcept = 0;
  virtual void add_loss(std::string_view reason, uint64_t count) noexcept = 0;
};

class Library {
 public:
  virtual uint32_t interface_number() const noexcept = 0;  // always the first: other libraries are asked for it, too
  virtual std::string_view torch_version() const noexcept = 0;
  virtual bool has_cupti() const noexcept = 0;
  // The caller's to delete. Null with the reason in `error`: a recording is running already.
  virtual Recording* start(const Options& options, Text& error) const = 0;
  virtual StepTimer* new_step_timer(bool on_device) const = 0;
  virtual Op* new_op(std::string_view name, bool is_user_range) const = 0;
  // Kind and ns: what the hooks cost, as far as it was measured.
  virtual void costs(Text& out) const = 0;

 protected:
  ~Library() = default;
};

}  // namespace firelane::library

// What a recorder exports besides record/core's functions (exports.map).
extern "C" const firelane::library::Library* firelane_recorder_library() noexcept;

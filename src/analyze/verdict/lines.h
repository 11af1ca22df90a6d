// What each line of the program costs: on the host and on the device, in the forward pass and in the backward pass that
// it causes.
//
// Host time is that of the leading chain of threads in the judged steps, each moment once: a moment belongs to the line
// of the op that is open, and a moment between two ops, in Python or other code that was not recorded, to the line that
// calls the next op ("before"). What remains has no line: input, collections, waits outside of ops, and ops that no
// Python called. So all of it adds up to the judged steps.
//
// Device work belongs to the line of the op that launched it, if it was launched in the judged steps.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/ops/op_lines.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

// One of a line's operators, or of the functions of its backward pass: "aten::cdist", "CdistBackward0".
struct LineOp {
  std::string_view name;  // lives as long as the model
  int64_t ns = 0;
};

struct LineRow {
  ProgramLine place;    // without `caller`, which may be several
  int64_t calls = 0;    // of ops, without those that other ops call
  int64_t host_ns = 0;  // in its ops
  int64_t before_ns = 0;
  int64_t backward_host_ns = 0;  // in ops of the backward pass, and on the way to them
  int64_t device_ns = 0;
  int64_t backward_device_ns = 0;
  int64_t kernels = 0;
  Row longest = kNoRow;         // of its ops and of their backward: where to look
  std::vector<LineOp> most_in;  // the few that take most: of the device's time if there is any, else in ops on the host

  int64_t all_host_ns() const { return host_ns + before_ns + backward_host_ns; }
  int64_t all_device_ns() const { return device_ns + backward_device_ns; }
};

struct LineTable {
  std::vector<LineRow> rows;  // with a device by device time, else by host time; most first
  int64_t window_ns = 0;      // of the judged steps
  int64_t other_host_ns = 0;  // without a line: with those of all rows, window_ns
  int64_t work_ns = 0;        // all device work of the judged steps
  int64_t other_device_ns = 0;
  bool is_known = false;  // the trace says which lines called its ops
};

LineTable line_table(const StudiedTrace& trace);

}  // namespace firelane::analyze

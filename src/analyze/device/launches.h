// How work reaches the device: what a launch costs, how long work waits in the queue, how deep it is.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::analyze {

struct LaunchRow {  // launches of one name: cudaLaunchKernel, cudaGraphLaunch, ...
  StringId name = kNoString;
  int64_t calls = 0;
  int64_t work = 0;     // pieces of device work they queued; more than calls for graphs
  int64_t call_ns = 0;  // time in the calls
  int64_t median_call_ns = 0;
  int64_t median_delay_ns = 0;  // from the call's return to the start of its first work; 0 when it started before
  int64_t max_delay_ns = 0;
  int64_t short_work = 0;  // pieces of work shorter than their call
};

struct QueueSample {
  int64_t time_ns = 0;
  int64_t depth = 0;  // pieces of work queued and not started
};

// How many pieces of work were queued and not started: every change, from the start of the trace on. Work whose launch
// is not in the trace does not count.
std::vector<QueueSample> queue_depth(const Model& model);

struct LaunchTable {
  std::vector<LaunchRow> rows;  // most time first
  int64_t calls = 0;
  int64_t work = 0;
  int64_t call_ns = 0;
  int64_t median_delay_ns = 0;
  int64_t short_work = 0;
  int64_t short_work_ns = 0;  // device time of work shorter than its call
  int64_t max_depth = 0;
  double mean_depth = 0;           // over time, in the window
  int64_t empty_queue_ns = 0;      // nothing queued
  int64_t full_queue_ns = 0;       // 1,000 or more queued: the driver makes launches wait
  int64_t blocked_ns = 0;          // time in launch calls beyond the usual while the queue was full
  int64_t without_launch = 0;      // work in the window whose launch is not in the trace
  std::vector<QueueSample> queue;  // every change in the window
};

// Launches and work of `window`: calls that start in it.
LaunchTable launch_table(const Model& model, const Interval& window);

}  // namespace firelane::analyze

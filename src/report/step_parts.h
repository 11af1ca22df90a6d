// Where the time of a step goes, in parts that add up to it: in the breakdown's table, in the bars of the verdict, and
// in the page's chart.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/verdict/study.h"
#include "report/table.h"

namespace firelane::report {

struct StepPart {
  std::string name;     // "compute", "idle: host_input"; of the host "op"
  std::string meaning;  // for people, in the words of the trace's device
  std::function<int64_t(const analyze::BreakdownRow& step)> time_ns;
};

// Why the device is idle, in the words of the trace's device.
std::string idle_words(const analyze::Study& study, analyze::IdleCause cause);

// For the device: working, then idle by cause. For the host: what its main thread did.
std::vector<StepPart> device_parts(const analyze::Study& study);
std::vector<StepPart> host_parts(const analyze::Study& study);
// For the device if it has work, otherwise for the host.
std::vector<StepPart> step_parts(const analyze::Study& study);

// A line with a bar for each part of the average step, as recorded; largest first.
std::string step_bars(const analyze::Study& study, const TextStyle& style = {});

}  // namespace firelane::report

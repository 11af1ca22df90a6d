// The pieces that summarize() puts together, each in a file of its own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/verdict/study.h"
#include "compare/run/run.h"
#include "model/model.h"

namespace firelane::compare {

// Device work and what launched it, or ops where there is no device; path_ns by the critical path.
std::vector<WorkGroup> work_groups(const Model& model, const analyze::Study& study);  // work.cc
// The part that a kernel or copy belongs to.
Part part_of_work(const Model& model, Row device_row, analyze::DeviceClass device_class,
                  analyze::TraitsOfNames& traits);  // work.cc

// Where the host's share of the critical path was spent, most time first.
std::vector<HostPlace> host_places(const Model& model, const analyze::Study& study);  // host_places.cc
Part part_of_activity(analyze::Activity activity);                                    // host_places.cc

// What the trace says of where it was made, and with which options it was recorded.
std::vector<std::pair<std::string, std::string>> environment_of(const Model& model);  // environment.cc
std::vector<std::pair<std::string, std::string>> recording_of(const Model& model);    // environment.cc

// "train.py(31): step": the innermost Python function around a host slice that is not of torch or Python itself, or of
// the op's stack; "" when neither was recorded.
std::string line_of(const Model& model, Row host_row);  // lines.cc

// Samples and tokens of a step, from the shapes of what goes into the model; 0 where the trace does not tell.
struct BatchSize {
  int64_t samples = 0;
  int64_t tokens = 0;
  std::string_view what;  // "images", "matrix rows": samples of two programs can be compared when both are the same
};
BatchSize batch_size(const Model& model, const analyze::Study& study);  // batch.cc

}  // namespace firelane::compare

// Names of lanes for people: "python3 688: thread 741 (python3)", "GPU 0: stream 7".
#pragma once

#include <string>

#include "model/model.h"

namespace firelane::describe {

std::string process_name(const Model& model, LaneId lane);
// The thread or stream alone; "(overlap 1)" and so on for the further tracks of a lane.
std::string lane_name(const Model& model, LaneId lane);
std::string track_name(const Model& model, LaneId lane, size_t track);

}  // namespace firelane::describe

// JSON traces of devices that are no NVIDIA GPU: what their events are, and what their lanes hold.
//
// Kineto gives MTIA's device events one category, and Ascend's exporter gives its own none at all: names and args tell
// a kernel from a copy or a wait. Some processes of such traces are no program: the device's queues as the host sees
// them, and lanes that a tool derived from others ("Overlap Analysis"). Those can be told only when all names are read.
#pragma once

#include <string_view>

#include "import/json/categories.h"
#include "model/raw.h"

namespace firelane::importer {

// For an event of category mtia_ccp_events.
DeviceKind mtia_kind(std::string_view name);

// For an event without a category; unknown if it is not one of Ascend's.
Category ascend_category(std::string_view name, std::string_view task_type, std::string_view level);

// "HOST_TO_DEVICE", "device to host".
CopyDirection direction_in_words(std::string_view text);

// Moves slices of device lanes to the device's side, derived lanes aside, and sets info.accelerator.
void settle_devices(RawTrace& raw);

}  // namespace firelane::importer

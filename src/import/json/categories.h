// What an event's category means: Kineto's names of every age (section 2.3 of its format),
// and what kind of row each becomes.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/model.h"

namespace firelane::importer {

struct Category {
  bool on_device = false;
  HostKind host = HostKind::kOther;
  DeviceKind device = DeviceKind::kOther;
  bool known = false;                               // one that Kineto writes
  Accelerator accelerator = Accelerator::kUnknown;  // whose category it is; none for those that several share
};

Category category_of(std::string_view name);

}  // namespace firelane::importer

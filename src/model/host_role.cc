#include "model/host_role.h"

#include <vector>

#include "model/assemble.h"

namespace firelane {

void mark_roles(Model& model) {
  std::vector<HostRole> role_of_name(model.strings.size(), HostRole::kNone);
  bool any = false;
  for (uint32_t id = 0; id < role_of_name.size(); ++id) {
    role_of_name[id] = role_of(model.strings.view(StringId{id}));
    any = any || role_of_name[id] != HostRole::kNone;
  }
  if (!any) return;
  HostSlices& slices = model.host_slices;
  for (Row row = 0; row < slices.size(); ++row) {
    const HostRole role = role_of_name[static_cast<uint32_t>(slices.name[row])];
    if (role != HostRole::kNone) slices.role[row] = role;
  }
}

}  // namespace firelane

// Recordings that nobody will ask for any more: a process that was killed, or ended by _exit(), leaves its temporary
// file behind. It can be read for a day; then the next recording that uses the folder removes it.
#pragma once

#include <filesystem>

namespace firelane::record {

// Files named firelane-PID-N.lane in `folder` whose process is gone and that were last written a day ago. Never fails:
// what cannot be removed stays.
void remove_abandoned(const std::filesystem::path& folder) noexcept;

}  // namespace firelane::record

#include "model/raw.h"

#include "base/hash.h"

namespace firelane {

size_t RawPool::KeyHash::operator()(const Key& key) const {
  const auto numbers = mix_hash(static_cast<uint64_t>(key.pid_number), static_cast<uint64_t>(key.tid_number));
  return mix_hash(numbers, uint64_t{key.pid_text} << 32 | key.tid_text);
}

LaneId RawPool::lane(const TraceId& pid, const TraceId& tid) {
  const Key key{pid.number, tid.number, static_cast<uint32_t>(pid.text), static_cast<uint32_t>(tid.text)};
  const auto [at, added] = lane_of_.try_emplace(key, LaneId{static_cast<uint32_t>(lanes.size())});
  if (added) lanes.push_back({.pid = pid, .tid = tid});
  return at->second;
}

}  // namespace firelane

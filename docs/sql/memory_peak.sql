-- When most GPU memory was allocated, and the innermost op that was open on the thread then.
with peak as (
  select time_ns, lane, device, total_allocated_bytes from memory_events
  where device_type = 1 order by total_allocated_bytes desc, time_ns limit 1
)
select peak.time_ns, peak.device, peak.total_allocated_bytes / 1048576.0 as allocated_mib, s.name
from peak join host_slices s on s.lane = peak.lane and s.start_ns <= peak.time_ns
where s.end_ns >= peak.time_ns and s.kind = 'op'
order by s.depth desc
limit 1;

-- From the call that queued a kernel to its start: small when the GPU waits for the host.
select s.number as step, count(*) as kernels, min(k.launch_delay_ns) / 1e3 as min_us,
       avg(k.launch_delay_ns) / 1e3 as mean_us, max(k.launch_delay_ns) / 1e3 as max_us
from kernels k
join host_slices l on l.id = k.launch
join steps s on l.start_ns between s.start_ns and s.start_ns + s.duration_ns
group by s.number;

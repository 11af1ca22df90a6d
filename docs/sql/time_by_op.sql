select op_name, count(*) as kernels, sum(duration_ns) / 1e6 as total_ms
from kernels
group by op_name
order by total_ms desc
limit 5;

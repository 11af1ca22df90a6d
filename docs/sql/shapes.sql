select input_dims, count(*) as calls, sum(duration_ns) / 1e6 as cpu_ms
from ops
where name = 'aten::mm'
group by input_dims
order by calls desc, input_dims
limit 5;

-- Per op: its time, and the part of it in which no slice that it called was open.
with children as (
  select parent as id, sum(duration_ns) as duration_ns from host_slices group by parent
)
select o.name, count(*) as calls, sum(o.duration_ns) / 1e6 as total_ms,
       sum(o.duration_ns - coalesce(c.duration_ns, 0)) / 1e6 as own_ms
from ops o left join children c on c.id = o.id
group by o.name
order by own_ms desc
limit 5;

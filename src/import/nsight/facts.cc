#include "import/nsight/facts.h"

#include "base/json_writer.h"
#include "model/raw.h"

namespace firelane::importer {

namespace {

std::string json_string(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.take();
}

void read_devices(SqlDatabase& database, TraceInfo& info, LossCounts& losses) {
  constexpr std::string_view kTable = "TARGET_INFO_GPU";
  if (database.has_table(kTable)) {
    database.scan(kTable,
                  {"cuDevice", "id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor", "maxWarpsPerSm",
                   "threadsPerWarp", "maxRegistersPerSm", "maxShmemPerSm"},
                  losses, [&](const SqlRow& row) {
                    DeviceProperties device;
                    device.id = row.is_null(0) ? row.integer(1) : row.integer(0);
                    device.name = row.text(2);
                    device.total_memory_bytes = row.integer(3);
                    device.multiprocessors = row.integer(4);
                    device.compute_major = row.integer(5);
                    device.compute_minor = row.integer(6);
                    device.warp_size = row.integer(8);
                    const int64_t warps = row.integer(7);
                    if (warps > 0 && warps < 4096 && device.warp_size > 0 && device.warp_size < 4096)
                      device.max_threads_per_multiprocessor = warps * device.warp_size;
                    device.registers_per_multiprocessor = row.integer(9);
                    device.shared_memory_per_multiprocessor_bytes = row.integer(10);
                    if (info.devices.size() < 1024) info.devices.push_back(std::move(device));
                  });
  } else {
    ++losses[Stat::kTableMissing];
  }
}

void read_names(SqlDatabase& database, const std::string& schema, TraceInfo& info) {
  const std::string driver = database.look_up("TARGET_INFO_SYSTEM_ENV", "name", "CudaDriverVersion", "value");
  if (!driver.empty()) info.metadata.push_back({"cuda_driver_version", json_string(driver)});
  const std::string host = database.look_up("TARGET_INFO_SYSTEM_ENV", "name", "Hostname", "value");
  if (!host.empty()) info.metadata.push_back({"host_name", json_string(host)});
  if (!schema.empty()) info.metadata.push_back({"nsys_schema", json_string(schema)});
}

void read_times_of_session(SqlDatabase& database, TraceInfo& info, LossCounts& losses) {
  if (!database.has_table("TARGET_INFO_SESSION_START_TIME")) return;
  database.scan("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs", "systemClockNs"}, losses, [&](const SqlRow& row) {
    const int64_t utc = row.integer(0);
    const int64_t clock = row.integer(1);  // of the same moment, on the clock of the events
    if (utc > 0 && utc < kMaxTimeNs) info.base_time_ns = utc - (clock > 0 && clock < utc ? clock : 0);
  });
}

}  // namespace

void read_facts(SqlDatabase& database, const std::string& schema, TraceInfo& info, LossCounts& losses) {
  read_devices(database, info, losses);
  read_names(database, schema, info);
  read_times_of_session(database, info, losses);
}

}  // namespace firelane::importer

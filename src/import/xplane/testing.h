// XPlane files for tests, made field by field.
#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace firelane::importer::xplane_testing {

using Writer = protozero::pbf_writer;

inline std::string entry(int64_t id, const std::string& value) {
  std::string out;
  Writer map(out);
  map.add_int64(1, id);
  map.add_message(2, value);
  return out;
}
inline std::string named(int64_t id, const std::string& name) {
  std::string out;
  Writer meta(out);
  meta.add_int64(1, id);
  meta.add_string(2, name);
  return entry(id, out);
}
inline std::string stat(int64_t name, int64_t number) {
  std::string out;
  Writer writer(out);
  writer.add_int64(1, name);
  writer.add_int64(4, number);
  return out;
}
inline std::string stat(int64_t name, const std::string& text) {
  std::string out;
  Writer writer(out);
  writer.add_int64(1, name);
  writer.add_string(5, text);
  return out;
}
inline std::string event(int64_t name, int64_t offset_ps, int64_t duration_ps,
                         const std::vector<std::string>& stats = {}) {
  std::string out;
  Writer writer(out);
  writer.add_int64(1, name);
  writer.add_int64(2, offset_ps);
  writer.add_int64(3, duration_ps);
  for (const std::string& each : stats) writer.add_message(4, each);
  return out;
}
inline std::string line(int64_t id, const std::string& name, const std::vector<std::string>& events) {
  std::string out;
  Writer writer(out);
  writer.add_int64(1, id);
  writer.add_string(2, name);
  writer.add_int64(3, 1000);
  for (const std::string& each : events) writer.add_message(4, each);
  return out;
}

// An op on a TPU with its category, FLOPs and bytes.
inline std::string op(int64_t id, const std::string& name, const std::string& category, int64_t flops, int64_t bytes) {
  std::string out;
  Writer meta(out);
  meta.add_int64(1, id);
  meta.add_string(2, "%" + name + " = f32[8]{0} ...");
  meta.add_string(4, name);
  meta.add_message(5, stat(1, category));
  meta.add_message(5, stat(2, flops));
  meta.add_message(5, stat(3, bytes));
  return entry(id, out);
}

}  // namespace firelane::importer::xplane_testing

// How often light steps get the right op: takes the ops away from every second step of recordings in which all steps
// are full, gives them back by comparison with the others (import/lane/light_ops.h), and counts which are the same.
//
//   light_ops FILE.lane ...
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "import/lane/light_ops.h"
#include "import/lane/light_rows.h"
#include "import/lane/read_lane.h"
#include "model/raw.h"

namespace {

using namespace firelane;

// Of each piece of work, by correlation and kernel: its op and those around it.
std::map<std::pair<int64_t, std::string>, std::string> ops_of(const Model& model) {
  std::map<std::pair<int64_t, std::string>, std::string> ops;
  const DeviceSlices& slices = model.device_slices;
  for (Row row = 0; row < slices.size(); ++row) {
    if (!is_launched(slices.kind[row])) continue;
    std::string path;
    for (Row op = slices.op[row]; op != kNoRow; op = model.host_slices.parent[op]) {
      if (model.host_slices.kind[op] != HostKind::kOp) continue;
      path += std::string(model.text(model.host_slices.name[op])) + " < ";
    }
    ops[{slices.correlation[row], std::string(model.text(slices.name[row]))}] = path;
  }
  return ops;
}

struct Score {
  size_t work = 0, right = 0, wrong = 0, none = 0;
};

Score score(const std::string& bytes, const std::string& name) {
  auto whole = importer::read_lane(bytes, name, uint64_t{1} << 32);
  auto stripped = importer::read_lane(bytes, name, uint64_t{1} << 32);
  if (!whole.ok() || !stripped.ok()) return {};
  RawTrace& raw = stripped.value();
  RawPart& part = raw.parts.front();
  std::vector<importer::LightWindow> windows;
  int steps = 0;
  for (const RawHostSlice& row : part.host_slices) {
    if (row.kind != HostKind::kAnnotation || !raw.pools.front().strings.view(row.name).starts_with("ProfilerStep#"))
      continue;
    if (steps++ % 2 == 0) windows.push_back({row.start_ns, row.start_ns + row.duration_ns});
  }
  if (steps < 2) return {};
  const auto is_inside = [&](int64_t time_ns) {
    for (const importer::LightWindow& window : windows) {
      if (time_ns >= window.begin_ns && time_ns < window.end_ns) return true;
    }
    return false;
  };
  std::erase_if(part.host_slices, [&](const RawHostSlice& row) {
    const bool is_step =
        row.kind == HostKind::kAnnotation && raw.pools.front().strings.view(row.name).starts_with("ProfilerStep#");
    return !is_call(row.kind) && !is_step && is_inside(row.start_ns);
  });
  const Model truth = assemble(std::move(whole).value());
  importer::split_light(raw, windows);
  if (raw.light == nullptr) return {};
  RawTrace light = std::move(*raw.light);
  const Model full = assemble(std::move(raw));
  importer::add_light_ops(light, full);
  const Model named = assemble(std::move(light));
  const auto expected = ops_of(truth);
  Score result;
  for (const auto& [key, path] : ops_of(named)) {
    const auto found = expected.find(key);
    if (found == expected.end() || found->second.empty()) continue;  // no op in the full step either
    ++result.work;
    ++(path == found->second ? result.right : path.empty() ? result.none : result.wrong);
  }
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  Score all;
  for (int i = 1; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const Score one = score(bytes, arguments[i]);
    if (one.work == 0) continue;
    std::printf("%6zu work  %6.2f%% right  %6.2f%% wrong  %6.2f%% none  %s\n", one.work,
                100.0 * static_cast<double>(one.right) / static_cast<double>(one.work),
                100.0 * static_cast<double>(one.wrong) / static_cast<double>(one.work),
                100.0 * static_cast<double>(one.none) / static_cast<double>(one.work), arguments[i]);
    all.work += one.work;
    all.right += one.right;
    all.wrong += one.wrong;
    all.none += one.none;
  }
  std::printf("%6zu work, %zu right, %zu wrong, %zu without op\n", all.work, all.right, all.wrong, all.none);
  return 0;
}

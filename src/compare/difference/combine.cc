#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/check.h"
#include "compare/difference/difference.h"

namespace firelane::compare {

namespace {

std::string key_of(const WorkGroup& group) {
  std::string key;
  for (const std::string* text : {&group.module, &group.op, &group.dims, &group.types, &group.kernel}) {
    key += *text + '\x1f';
  }
  return key;
}

void add_work(const Run& run, double share, std::unordered_map<std::string, size_t>& index, Run& out) {
  for (const WorkGroup& group : run.work) {
    const auto [found, is_new] = index.try_emplace(key_of(group), out.work.size());
    if (is_new) {
      out.work.push_back(group);
      out.work.back().calls = out.work.back().total_ns = out.work.back().path_ns = 0;
    }
    WorkGroup& sum = out.work[found->second];
    sum.calls += group.calls * share;
    sum.total_ns += group.total_ns * share;
    sum.path_ns += group.path_ns * share;
  }
}

template <typename Item, typename Same, typename Add>
void add_items(const std::vector<Item>& items, std::vector<Item>& out, const Same& same, const Add& add) {
  for (const Item& item : items) {
    size_t at = 0;
    while (at < out.size() && !same(out[at], item)) ++at;
    if (at == out.size()) {
      out.push_back(item);
      add(out.back(), item, true);
    } else {
      add(out[at], item, false);
    }
  }
}

}  // namespace

void merge_work_without(std::string WorkGroup::* detail, Run& run) {
  Run merged;
  std::unordered_map<std::string, size_t> index;
  for (WorkGroup& group : run.work) (group.*detail).clear();
  add_work(run, 1, index, merged);
  run.work = std::move(merged.work);
}

Run combine(const std::vector<Run>& runs) {
  FL_CHECK(!runs.empty(), "combine: no runs");
  if (runs.size() == 1) return runs[0];
  Run out = runs[0];
  const double share = 1 / static_cast<double>(runs.size());
  const auto count = static_cast<int64_t>(runs.size());
  const auto mean_of = [&](auto member) {
    using T = std::decay_t<decltype(runs[0].*member)>;
    double sum = 0;
    for (const Run& run : runs) sum += static_cast<double>(run.*member);
    out.*member = static_cast<T>(sum * share);
  };
  for (const auto member :
       {&Run::step_ns, &Run::recorded_ns, &Run::gpu_ns, &Run::busy_ns, &Run::input_wait_ns, &Run::peak_bytes}) {
    mean_of(member);
  }
  for (const auto member :
       {&Run::launches, &Run::kernels, &Run::copies, &Run::syncs, &Run::ops, &Run::allocator_calls, &Run::flops}) {
    mean_of(member);
  }
  // Known only where every run knows it. A part of the peak is of the time that all runs took.
  const auto all_know = [&](double Run::* member) {
    return std::all_of(runs.begin(), runs.end(), [&](const Run& run) { return run.*member >= 0; });
  };
  for (double Run::* const member : {&Run::energy_joules, &Run::mean_power_watts}) {
    out.*member = -1;
    if (all_know(member)) mean_of(member);
  }
  double at_peak_ns = 0;
  double all_ns = 0;
  for (const Run& run : runs) {
    at_peak_ns += run.mfu_percent * static_cast<double>(run.step_ns);
    all_ns += static_cast<double>(run.step_ns);
  }
  out.mfu_percent = all_know(&Run::mfu_percent) && all_ns > 0 ? at_peak_ns / all_ns : -1;
  int64_t given = 0;
  for (size_t part = 0; part < kPartCount; ++part) {
    int64_t sum = 0;
    for (const Run& run : runs) sum += run.parts[part];
    out.parts[part] = sum / count;
    given += out.parts[part];
  }
  out.parts[static_cast<size_t>(Part::kUneven)] += out.step_ns - given;
  int64_t memory_given = 0;
  for (size_t i = 0; i < out.memory.size(); ++i) {
    int64_t sum = 0;
    for (const Run& run : runs) sum += run.memory[i];
    out.memory[i] = sum / count;
    memory_given += out.memory[i];
  }
  out.memory[static_cast<size_t>(analyze::MemoryCategory::kUnknown)] += out.peak_bytes - memory_given;
  out.precisions.clear();
  out.work.clear();
  out.places.clear();
  out.sync_places.clear();
  std::unordered_map<std::string, size_t> index;
  for (const Run& run : runs) {
    add_work(run, share, index, out);
    add_items(
        run.precisions, out.precisions,
        [](const PrecisionUse& a, const PrecisionUse& b) { return a.precision == b.precision; },
        [&](PrecisionUse& sum, const PrecisionUse& item, bool is_new) {
          sum.flops = (is_new ? 0 : sum.flops) + item.flops * share;
          sum.device_ns = (is_new ? 0 : sum.device_ns) + item.device_ns * share;
        });
    add_items(
        run.places, out.places,
        [](const HostPlace& a, const HostPlace& b) {
          return std::tie(a.part, a.op, a.line) == std::tie(b.part, b.op, b.line);
        },
        [&](HostPlace& sum, const HostPlace& item, bool is_new) { sum.ns = (is_new ? 0 : sum.ns) + item.ns * share; });
    add_items(
        run.sync_places, out.sync_places,
        [](const SyncPlace& a, const SyncPlace& b) {
          return std::tie(a.reason, a.op, a.line) == std::tie(b.reason, b.op, b.line);
        },
        [&](SyncPlace& sum, const SyncPlace& item, bool is_new) {
          sum.calls = (is_new ? 0 : sum.calls) + item.calls * share;
          sum.ns = (is_new ? 0 : sum.ns) + item.ns * share;
        });
  }
  return out;
}

}  // namespace firelane::compare

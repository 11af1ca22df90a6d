#include "serve/counters.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "analyze/device/launches.h"
#include "describe/lane_name.h"
#include "model/gpu_counters.h"
#include "serve/handlers.h"

namespace firelane::serve {

namespace {

void add_sample(CounterTrack& track, int64_t time_ns, double value) {
  const bool is_first = track.times_ns.empty();
  track.min = is_first ? value : std::min(track.min, value);
  track.max = is_first ? value : std::max(track.max, value);
  track.times_ns.push_back(time_ns);
  track.values.push_back(value);
}

// "GPU 0 power (W)" says its device and its unit itself; Kineto's and our recorder's names do. What is said once more
// beside the name is taken out of it.
void name_recorded(std::string text, CounterTrack& track) {
  if (text.starts_with("GPU ")) {
    const size_t end = text.find(' ', 4);
    track.group = text.substr(0, end);
    if (end != std::string::npos) text.erase(0, end + 1);
  }
  const size_t open = text.rfind(" (");
  if (open != std::string::npos && open > 0 && text.ends_with(')') && text.size() - open <= 9) {
    track.unit = text.substr(open + 2, text.size() - open - 3);
    text.resize(open);
  } else if (text.find("power") != std::string::npos || text.find("Power") != std::string::npos) {
    track.unit = text.find("mW") != std::string::npos ? "mW" : "W";
  }
  if (track.unit == "C" && text == "temperature") track.unit = "°C";
  if (text == "utilization") text += " by NVML";  // over some 100 ms; `busy` is what the trace itself says
  track.name = std::move(text);
}

// NVML counts energy from when the driver was loaded; what was used since the first reading is what one wants to see.
// One reading says nothing: the track goes.
void begin_at_zero(CounterTrack& track) {
  if (track.values.size() < 2) return track.times_ns.clear();
  track.name = "energy used";
  track.max -= track.values.front();
  track.min -= track.values.front();
  for (double& value : track.values | std::views::reverse) value -= track.values.front();
}

struct MetricName {
  std::string_view metric, label;
};
constexpr MetricName kMetricNames[] = {
    {"sm__cycles_active", "SMs active"},
    {"sm__pipe_tensor_cycles_active_realtime", "tensor cores active"},
    {"sm__pipe_tensor_cycles_active", "tensor cores active"},
    {"dram__bytes_read", "DRAM reads"},
    {"dram__bytes_write", "DRAM writes"},
    {"pcie__read_bytes", "PCIe to the GPU"},
    {"pcie__write_bytes", "PCIe from the GPU"},
    {"nvlrx__bytes", "NVLink received"},
    {"nvltx__bytes", "NVLink sent"},
};

// "sm__cycles_active.avg.pct_of_peak_sustained_elapsed" is in percent; the rollup of those that we know goes without
// saying.
void name_metric(std::string text, CounterTrack& track) {
  track.unit = text.ends_with(".pct_of_peak_sustained_elapsed")                           ? "%"
               : text.ends_with(".per_second") && text.find("bytes") != std::string::npos ? "bytes/s"
                                                                                          : "";
  const std::string_view metric = std::string_view(text).substr(0, text.find('.'));
  if (!track.unit.empty()) {
    for (const MetricName& known : kMetricNames) {
      if (metric == known.metric) return void(track.name = known.label);
    }
  }
  track.name = std::move(text);
}

void add_recorded(const Model& model, std::vector<CounterTrack>& out) {
  const CounterTracks& tracks = model.counter_tracks;
  const size_t first = out.size();
  for (size_t i = 0; i < tracks.size(); ++i) {
    const std::string_view series = model.text(tracks.series[i]);
    CounterTrack& track = out.emplace_back();
    // The metrics of Nsight Systems are a GPU's: its number stands where others have a process.
    track.group = (model.info.origin == Origin::kNsight ? "GPU " : "process ") + model.id_text(tracks.pid[i]);
    std::string name(model.text(tracks.name[i]));
    if (const int32_t device = device_of_gpu_counters(model.text(tracks.pid[i].text)); device >= 0) {
      track.group = "GPU " + std::to_string(device);
      name_metric(std::move(name), track);
      continue;
    }
    if (!series.empty() && series != name) name += " " + std::string(series);
    name_recorded(std::move(name), track);
  }
  const CounterSamples& samples = model.counter_samples;
  for (size_t i = 0; i < samples.size(); ++i) {
    add_sample(out[first + samples.track[i]], samples.time_ns[i], samples.value[i]);
  }
  for (size_t i = first; i < out.size(); ++i) {
    if (out[i].name == "energy") begin_at_zero(out[i]);
  }
}

void add_memory(const Model& model, std::vector<CounterTrack>& out) {
  const MemoryEvents& events = model.memory_events;
  struct Pair {
    CounterTrack allocated;
    CounterTrack reserved;
    int64_t sum = 0;
  };
  std::map<std::pair<int32_t, int32_t>, Pair> devices;  // GPUs first
  for (Row event = 0; event < events.size(); ++event) {
    if (events.kind[event] == MemoryEventKind::kOutOfMemory) continue;
    Pair& pair = devices[{-events.device_type[event], events.device[event]}];
    pair.sum += events.bytes[event];
    const int64_t total = events.total_allocated_bytes[event];
    add_sample(pair.allocated, events.time_ns[event], static_cast<double>(total == kNoNumber ? pair.sum : total));
    const int64_t reserved = events.total_reserved_bytes[event];
    if (reserved > 0) add_sample(pair.reserved, events.time_ns[event], static_cast<double>(reserved));
  }
  for (auto& [device, pair] : devices) {
    const std::string group =
        device.first == 0 ? "CPU"
                          : std::string(device_word(model.info.accelerator)) + " " + std::to_string(device.second);
    for (auto& [name, track] :
         {std::pair{"memory allocated", &pair.allocated}, std::pair{"memory reserved", &pair.reserved}}) {
      if (track->times_ns.empty()) continue;
      track->group = group;
      track->name = name;
      track->unit = "bytes";
      out.push_back(std::move(*track));
    }
  }
}

void add_device_use(const Model& model, std::vector<CounterTrack>& out) {
  const DeviceSlices& device = model.device_slices;
  std::map<int32_t, std::vector<analyze::Interval>> work;
  std::map<int32_t, LaneId> lanes;
  for (Row row = 0; row < device.size(); ++row) {
    if (!is_device_work(device.kind[row])) continue;
    work[device.device[row]].push_back({device.start_ns[row], device.end_ns(row)});
    lanes.try_emplace(device.device[row], device.lane[row]);
  }
  for (auto& [number, intervals] : work) {
    CounterTrack& track = out.emplace_back();
    track.group = describe::process_name(model, lanes.at(number));
    track.name = "busy";
    track.unit = "%";
    track.max = 100;
    track.on = analyze::IntervalSet(std::move(intervals));
  }
  CounterTrack queue{.group = work.size() == 1 ? out.back().group : std::string(device_word(model.info.accelerator)),
                     .name = "queued work",
                     .unit = ""};
  for (const analyze::QueueSample& sample : analyze::queue_depth(model)) {
    add_sample(queue, sample.time_ns, static_cast<double>(sample.depth));
  }
  if (!queue.times_ns.empty()) out.push_back(std::move(queue));
}

std::vector<std::optional<CounterBin>> shares_of(const analyze::IntervalSet& on, int64_t from_ns, int64_t bin_ns,
                                                 size_t bins) {
  std::vector<std::optional<CounterBin>> out;
  for (size_t i = 0; i < bins; ++i) {
    const int64_t start = from_ns + static_cast<int64_t>(i) * bin_ns;
    const double share =
        100.0 * static_cast<double>(on.covered_ns(start, start + bin_ns)) / static_cast<double>(bin_ns);
    out.push_back(CounterBin{share, share, share});
  }
  return out;
}

}  // namespace

std::vector<CounterTrack> find_counters(const Model& model) {
  std::vector<CounterTrack> out;
  add_device_use(model, out);
  add_memory(model, out);
  add_recorded(model, out);
  std::erase_if(out, [](const CounterTrack& track) { return track.times_ns.empty() && !track.on; });
  return out;
}

std::vector<std::optional<CounterBin>> counter_bins(const CounterTrack& track, int64_t from_ns, int64_t bin_ns,
                                                    size_t bins) {
  if (track.on) return shares_of(*track.on, from_ns, bin_ns, bins);
  std::vector<std::optional<CounterBin>> out;
  auto sample = static_cast<size_t>(std::lower_bound(track.times_ns.begin(), track.times_ns.end(), from_ns) -
                                    track.times_ns.begin());
  for (size_t i = 0; i < bins; ++i) {
    const int64_t end = from_ns + static_cast<int64_t>(i + 1) * bin_ns;
    std::optional<CounterBin> bin;
    if (sample > 0) bin = CounterBin{track.values[sample - 1], track.values[sample - 1], track.values[sample - 1]};
    for (; sample < track.times_ns.size() && track.times_ns[sample] < end; ++sample) {
      const double value = track.values[sample];
      if (!bin) bin = CounterBin{value, value, value};
      bin->min = std::min(bin->min, value);
      bin->max = std::max(bin->max, value);
      bin->last = value;
    }
    out.push_back(bin);
  }
  return out;
}

// /api/t/T/counters
Answer counters(const ServedTrace& trace, const Request& request) {
  Parameters wanted(request);
  const Window window = wanted_window(wanted, trace);
  const std::vector<CounterTrack>& tracks = trace.counters();
  const auto last = static_cast<int64_t>(tracks.size()) - 1;
  std::optional<std::vector<int64_t>> asked = wanted.list("tracks", 64, std::max<int64_t>(0, last));
  if (!wanted.ok()) return bad_request(wanted);
  if (!asked) {
    asked.emplace();
    for (int64_t id = 0; id <= last; ++id) asked->push_back(id);
  }
  JsonWriter json;
  json.begin_object().field("from_ns", window.from_ns).field("bin_ns", window.bin_ns).key("tracks").begin_array();
  for (const int64_t id : *asked) {
    if (id > last) continue;
    const auto bins = counter_bins(tracks[static_cast<size_t>(id)], window.from_ns, window.bin_ns, window.bins);
    json.begin_object().field("id", id);
    for (const auto& [name, field] :
         {std::pair{"min", &CounterBin::min}, {"max", &CounterBin::max}, {"last", &CounterBin::last}}) {
      json.key(name).begin_array();
      for (const std::optional<CounterBin>& bin : bins) {
        if (bin) {
          json.value((*bin).*field);
        } else {
          json.null();
        }
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_array().end_object();
  return json_answer(std::move(json));
}

}  // namespace firelane::serve

#include "cli/sampled.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "base/json_writer.h"

namespace firelane::cli {

namespace {

using live::Frame;
using live::Function;
using live::SampleCounts;
using live::SampledStack;
using live::Samples;

struct FunctionTotals {
  SampleCounts self;
  SampleCounts total;
  std::map<int32_t, SampleCounts> lines;  // where in it the program was

  // REQUIRES: it was seen.
  int32_t hottest_line() const {
    const auto most = std::max_element(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.second.on_cpu, a.second.all) < std::tuple(b.second.on_cpu, b.second.all);
    });
    return most->first;
  }
};

void add(SampleCounts& to, const SampleCounts& counts) {
  to.all += counts.all;
  to.on_cpu += counts.on_cpu;
  to.with_gil += counts.with_gil;
}

std::vector<FunctionTotals> totals_of(const Samples& samples) {
  std::vector<FunctionTotals> out(samples.functions.size());
  std::unordered_set<uint32_t> seen;
  for (const SampledStack& each : samples.counted) {
    const std::vector<Frame>& stack = samples.stacks[each.stack];
    if (stack.empty()) continue;
    add(out[stack[0].function].self, each.counts);
    seen.clear();
    for (const Frame& frame : stack) {
      add(out[frame.function].lines[frame.line], each.counts);
      if (seen.insert(frame.function).second) add(out[frame.function].total, each.counts);
    }
  }
  return out;
}

// "torch/nn/modules/module.py": without the folders that every installation has in front.
std::string short_file(const std::string& file) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = file.rfind(folder);
    if (at != std::string::npos) return file.substr(at + folder.size());
  }
  const size_t library = file.rfind("/lib/python3.");
  const size_t end = library == std::string::npos ? library : file.find('/', library + 13);
  return end == std::string::npos ? file : file.substr(end + 1);
}

std::string thread_name(const Samples& samples, uint32_t thread) {
  const live::SampledThread& each = samples.threads[thread];
  const std::string id = each.native_id != 0 ? std::to_string(each.native_id) : "#" + std::to_string(thread);
  return each.name.empty() ? "thread " + id : each.name + " " + id;
}

double percent(uint64_t part, uint64_t whole) {
  return report::percent_of(static_cast<int64_t>(part), static_cast<int64_t>(whole));
}

template <typename Rank>
std::vector<size_t> order_by(size_t count, Rank rank) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) > rank(b); });
  return order;
}

report::Table functions_table(const Samples& samples, size_t row_count) {
  const std::vector<FunctionTotals> totals = totals_of(samples);
  SampleCounts sum;
  for (const FunctionTotals& each : totals) add(sum, each.self);
  const double second = samples.rate;
  report::Table table{.name = "functions", .title = "Functions"};
  table.columns = {{"self_cpu_percent", "Self on CPU", report::Kind::kPercent},
                   {"total_cpu_percent", "Total on CPU", report::Kind::kPercent},
                   {"self_waiting_s", "Self waiting, s", report::Kind::kNumber},
                   {"gil_percent", "Self with GIL", report::Kind::kPercent},
                   {"function", "Function", report::Kind::kText, report::Align::kByKind, 40},
                   {"place", "Hottest line", report::Kind::kText, report::Align::kByKind, 48}};
  const auto cpu = [&](const SampleCounts& counts) { return samples.knows_cpu ? counts.on_cpu : counts.all; };
  const auto rank = [&](size_t i) {
    return std::tuple(cpu(totals[i].self), cpu(totals[i].total), totals[i].self.all, totals[i].total.all);
  };
  const std::vector<size_t> order = order_by(totals.size(), rank);
  table.row_count = order.size();
  for (const size_t i : order) {
    if (row_count != 0 && table.rows.size() == row_count) break;
    const FunctionTotals& each = totals[i];
    if (each.lines.empty()) continue;  // only in stacks that were torn
    const Function& function = samples.functions[i];
    table.add(
        {percent(cpu(each.self), cpu(sum)), percent(cpu(each.total), cpu(sum)),
         static_cast<double>(each.self.all - cpu(each.self)) / second, percent(each.self.with_gil, samples.tick_count),
         function.name,
         function.is_native ? function.file : fmt::format("{}:{}", short_file(function.file), each.hottest_line())});
  }
  return table;
}

report::Table threads_table(const Samples& samples, size_t row_count) {
  std::vector<SampleCounts> totals(samples.threads.size());
  for (const SampledStack& each : samples.counted) add(totals[each.thread], each.counts);
  report::Table table{.name = "threads", .title = "Threads"};
  table.columns = {{"thread", "Thread"},
                   {"seen_s", "Seen, s", report::Kind::kNumber},
                   {"cpu_percent", "On CPU", report::Kind::kPercent},
                   {"gil_percent", "With GIL", report::Kind::kPercent}};
  const auto rank = [&](size_t i) { return std::tuple(totals[i].on_cpu, totals[i].with_gil, totals[i].all); };
  const std::vector<size_t> order = order_by(totals.size(), rank);
  table.row_count = order.size();
  for (const size_t i : order) {
    if (row_count != 0 && table.rows.size() == row_count) break;
    const SampleCounts& each = totals[i];
    table.add({thread_name(samples, static_cast<uint32_t>(i)), static_cast<double>(each.all) / samples.rate,
               report::known_if(samples.knows_cpu, percent(each.on_cpu, each.all)), percent(each.with_gil, each.all)});
  }
  return table;
}

// A stack and what of it was counted: root first, so that equal beginnings lie beside each other.
struct Weighted {
  std::vector<uint32_t> frames;  // in NamedStacks::places()
  uint64_t count = 0;
};

// Stacks as places in the source, of one thread, sorted; those that waited end in kWaiting.
class NamedStacks {
 public:
  struct Place {
    std::string name;
    std::string file;  // "": none
    int32_t line = 0;

    auto operator<=>(const Place&) const = default;
    std::string text() const {
      if (file.empty()) return name;
      return line == 0 ? fmt::format("{} ({})", name, file) : fmt::format("{} ({}:{})", name, file, line);
    }
  };

  explicit NamedStacks(const Samples& samples) : samples_(samples) { waiting_ = id_of({.name = kWaiting}); }

  std::vector<Weighted> of_thread(uint32_t thread) {
    std::vector<Weighted> out;
    for (const SampledStack& each : samples_.counted) {
      const std::vector<Frame>& stack = samples_.stacks[each.stack];
      if (each.thread != thread || stack.empty()) continue;
      Weighted weighted;
      for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
        const Function& function = samples_.functions[frame->function];
        weighted.frames.push_back(id_of({function.name, short_file(function.file), frame->line}));
      }
      const uint64_t on_cpu = samples_.knows_cpu ? each.counts.on_cpu : each.counts.all;
      if (on_cpu > 0) out.push_back({weighted.frames, on_cpu});
      weighted.frames.push_back(waiting_);
      weighted.count = each.counts.all - on_cpu;
      if (weighted.count > 0) out.push_back(std::move(weighted));
    }
    std::sort(out.begin(), out.end(), [&](const Weighted& a, const Weighted& b) {
      return std::lexicographical_compare(a.frames.begin(), a.frames.end(), b.frames.begin(), b.frames.end(),
                                          [&](uint32_t x, uint32_t y) { return x != y && places_[x] < places_[y]; });
    });
    return out;
  }

  const std::vector<Place>& places() const { return places_; }

 private:
  uint32_t id_of(const Place& place) {
    const auto [found, is_new] = ids_.try_emplace(place, static_cast<uint32_t>(places_.size()));
    if (is_new) places_.push_back(place);
    return found->second;
  }

  const Samples& samples_;
  std::map<Place, uint32_t> ids_;
  std::vector<Place> places_;
  uint32_t waiting_ = 0;
};

}  // namespace

report::Report sample_report(const Samples& samples, size_t row_count) {
  report::Report out;
  out.facts = {{"duration_s", "Duration, s", report::Kind::kNumber, samples.duration_s},
               {"rate_hz", "Rate, Hz", report::Kind::kNumber, samples.rate},
               {"looks", "Samples", report::Kind::kNumber, static_cast<int64_t>(samples.tick_count)},
               {"threads", "Threads", report::Kind::kNumber, static_cast<int64_t>(samples.threads.size())},
               {"own_cpu_percent", "Sampler's own CPU", report::Kind::kPercent,
                samples.duration_s > 0 ? 100 * samples.own_cpu_s / samples.duration_s : 0.0}};
  out.tables = {functions_table(samples, row_count), threads_table(samples, row_count)};
  if (samples.missed_count > 0) {
    out.notes.emplace_back(fmt::format("{} samples skipped: the machine was too busy", samples.missed_count));
  }
  if (!samples.failure.empty()) out.notes.emplace_back(fmt::format("sampling ended early: {}", samples.failure));
  if (samples.torn_count > 0)
    out.notes.emplace_back(
        fmt::format("{} stacks changed while they were read, and are not counted", samples.torn_count));
  if (!samples.sampling_note.empty())
    out.notes.emplace_back(samples.sampling_note);
  else if (samples.without_native_count > 0)
    out.notes.emplace_back(fmt::format("{} samples of running threads lack native frames: no kernel sample",
                                       samples.without_native_count));
  if (samples.unfit_count > 0)
    out.notes.emplace_back(fmt::format(
        "{} native stacks could not be walked to their end: their innermost part and Python's frames are there",
        samples.unfit_count));
  if (!samples.knows_cpu)
    out.notes.emplace_back("this system does not say when threads were on a core: waiting counts as running");
  return out;
}

std::string speedscope_of(const Samples& samples, const std::string& name) {
  NamedStacks stacks(samples);
  std::vector<std::vector<Weighted>> threads;
  for (uint32_t i = 0; i < samples.threads.size(); ++i) threads.push_back(stacks.of_thread(i));
  JsonWriter json;
  json.begin_object().field("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.field("name", name).field("exporter", "firelane sample").field("activeProfileIndex", int64_t{0});
  json.key("shared").begin_object().key("frames").begin_array();
  for (const NamedStacks::Place& place : stacks.places()) {
    json.begin_object().field("name", place.name);
    if (!place.file.empty()) json.field("file", place.file);
    if (place.line != 0) json.field("line", int64_t{place.line});
    json.end_object();
  }
  json.end_array().end_object().key("profiles").begin_array();
  for (uint32_t i = 0; i < threads.size(); ++i) {
    const uint64_t count = std::accumulate(threads[i].begin(), threads[i].end(), uint64_t{0},
                                           [](uint64_t sum, const Weighted& each) { return sum + each.count; });
    json.begin_object().field("type", "sampled").field("name", thread_name(samples, i)).field("unit", "seconds");
    json.field("startValue", int64_t{0}).field("endValue", static_cast<double>(count) / samples.rate);
    json.key("samples").begin_array();
    for (const Weighted& each : threads[i]) {
      json.begin_array();
      for (const uint32_t frame : each.frames) json.value(int64_t{frame});
      json.end_array();
    }
    json.end_array().key("weights").begin_array();
    for (const Weighted& each : threads[i]) json.value(static_cast<double>(each.count) / samples.rate);
    json.end_array().end_object();
  }
  return json.end_array().end_object().take() + "\n";
}

std::string collapsed_of(const Samples& samples) {
  NamedStacks stacks(samples);
  const auto without_marks = [](std::string text) {
    std::ranges::replace(text, ';', ':');
    std::ranges::replace(text, '\n', ' ');
    return text;
  };
  std::string out;
  for (uint32_t i = 0; i < samples.threads.size(); ++i) {
    for (const Weighted& each : stacks.of_thread(i)) {
      out += without_marks(thread_name(samples, i));
      for (const uint32_t frame : each.frames) out += ";" + without_marks(stacks.places()[frame].text());
      out += fmt::format(" {}\n", each.count);
    }
  }
  return out;
}

}  // namespace firelane::cli

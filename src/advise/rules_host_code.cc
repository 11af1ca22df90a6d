// What the program does on the host while nothing is launched: operators on the CPU, garbage collection, other code.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "advise/copy_runs.h"
#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "advise/host_work.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "advise/wide_copies.h"
#include "analyze/common/median.h"
#include "analyze/host/dispatch.h"
#include "analyze/steps/phases.h"

namespace firelane::advise {

namespace {

std::vector<Finding> find_host_compute(const Context& context) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::vector<HostWork> all = context.trace.get<host_work>();
  const auto& weights = context.trace.get<weight_copy_runs>();  // what the host does with them is said there
  const auto& wide = context.trace.get<wide_copies>();
  std::unordered_set<Row> widening;
  for (const WideCopy& each : wide) {
    if (each.on_host) widening.insert(outermost_op(model, each.op));
  }
  std::erase_if(all, [&](const HostWork& work) {
    return widening.contains(work.longest) || is_in_run(weights, work.lane, work.start_ns);
  });
  if (all.empty()) return {};
  analyze::WhatIf ops_only;
  analyze::WhatIf whole;
  std::vector<Row> ops;
  std::vector<analyze::Interval> copying;
  Row longest = kNoRow;
  int64_t fetches = 0;
  for (const HostWork& work : all) {
    whole.host.push_back({work.lane, work.start_ns, work.end_ns, 0});
    for (const analyze::Interval& each : work.giving_back)
      whole.host.push_back({work.lane, each.start_ns, each.end_ns, 0});
    fetches += static_cast<int64_t>(work.fetches.size());
    for (const Row fetch : work.fetches) copying.push_back({host.start_ns[fetch], host.end_ns(fetch)});
    for (const Row op : work.ops) {
      ops_only.host.push_back({work.lane, host.start_ns[op], host.end_ns(op), 0.05});
      ops.push_back(op);
      if (longest == kNoRow || host.duration_ns[op] > host.duration_ns[longest]) longest = op;
    }
    for (const Row copy : work.copies) copying.push_back({host.start_ns[copy], host.end_ns(copy)});
  }
  const auto is_copying = [&](Row call) {
    return std::any_of(copying.begin(), copying.end(), [&](const analyze::Interval& each) {
      return host.start_ns[call] >= each.start_ns && host.start_ns[call] < each.end_ns;
    });
  };
  int64_t bytes = 0;
  int64_t copies = 0;
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || model.device_slices.kind[row] != DeviceKind::kCopy || !is_copying(launch)) continue;
    whole.device.push_back({row, 0});
    whole.waits.push_back(launch);
    if (model.copy_kinds(row).direction != CopyDirection::kHtoD) continue;
    ++copies;
    const Row detail = model.device_slices.detail[row];
    if (detail != kNoRow && model.copy_details.bytes[detail] > 0) bytes += model.copy_details.bytes[detail];
  }
  for (const analyze::SyncRow& sync : context.study->syncs.rows) {
    if (is_copying(sync.call)) whole.waits.push_back(sync.call);
  }
  int64_t spent_ns = 0;
  for (const HostWork& work : all) {
    spent_ns += work.end_ns - work.start_ns;
    for (const analyze::Interval& each : work.giving_back) spent_ns += each.end_ns - each.start_ns;
  }
  Finding finding{.id = "host-compute", .cost_ns = context.study->per_step(spent_ns)};
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.gain.high_ns = context.gain_ns(whole);
  finding.gain.low_ns = copies + fetches > 0 ? finding.gain.high_ns * 9 / 10 : context.gain_ns(ops_only);
  finding.events = static_cast<int64_t>(ops.size());
  std::vector<std::string_view> names;
  add_longest(finding, model, ops);
  for (const SliceRef& slice : finding.slices) {
    const std::string_view name = model.text(host.name[slice.row]);
    if (std::find(names.begin(), names.end(), name) == names.end() && names.size() < 3) names.push_back(name);
  }
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  finding.title = "the CPU computes while the device waits (" + text + "): " + short_time(finding.cost_ns) +
                  " of each step (" + short_percent(finding.share_of_step) + ")";
  if (fetches > 0) {
    finding.title += "; its inputs are copied from the device " +
                     counted(std::max<int64_t>(1, context.study->per_step(fetches)), "time", "times") + " a step";
  } else if (copies > 0 && bytes > 0) {
    finding.title += "; " + short_bytes(context.study->per_step(bytes)) + " are built there and copied in every step";
  }
  finding.try_text = "create the tensor on the device, once if it does not change, or prepare it in DataLoader workers";
  finding.try_code =
      "torch.arange(n, device=\"cuda\")  # and keep what stays the same: self.register_buffer(\"bias\", bias)";
  if (fetches > 0) {
    finding.try_text = "compute it on the device, where the data is, and copy back only the result";
    finding.try_code = "best = scores.softmax(-1).argmax(-1)  # and no scores.cpu() before it";
  }
  finding.confidence = Confidence::kHigh;
  finding.part_of = "overhead";
  finding.cause = "host-compute";
  return {finding};
}

// Where the program was: the operators before and after.
struct Place {
  StringId after = kNoString;
  StringId before = kNoString;
  auto operator<=>(const Place&) const = default;
};

// A step's end parts places.
Place place_of(const Context& context, const analyze::CodeStretch& stretch, const analyze::FoundStep& step) {
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto lane = static_cast<size_t>(context.study->host->chains[0].lanes[0]);
  const auto begin = host.start_ns.begin();
  const auto after = static_cast<Row>(
      std::lower_bound(begin + model.lanes.host_begin[lane], begin + model.lanes.host_end[lane], stretch.start_ns) -
      begin);
  Place place;
  for (Row row = after; row > model.lanes.host_begin[lane]; --row) {
    if (!is_outermost_op(host, row - 1)) continue;
    if (host.start_ns[row - 1] >= step.start_ns) place.after = host.name[row - 1];
    break;
  }
  for (Row row = after; row < model.lanes.host_end[lane]; ++row) {
    if (host.start_ns[row] < stretch.end_ns || !is_outermost_op(host, row)) continue;
    if (host.start_ns[row] < step.end_ns) place.before = host.name[row];
    break;
  }
  return place;
}

// For a recording without Python's functions: "" where there is no operator around it.
std::string place_text(const Context& context, const analyze::CodeStretch& stretch, std::string_view lead) {
  const auto& steps = context.study->steps.steps;
  const auto step = std::partition_point(
      steps.begin(), steps.end(), [&](const analyze::FoundStep& each) { return each.end_ns <= stretch.start_ns; });
  const Place place = place_of(context, stretch, step == steps.end() ? steps.back() : *step);
  std::string text;
  if (place.after != kNoString) text = "after " + std::string(context.model.text(place.after));
  if (place.before != kNoString)
    text += (text.empty() ? "before " : " and before ") + std::string(context.model.text(place.before));
  return text.empty() ? "" : std::string(lead) + text;
}

// Collections that the program asks for: of all generations, in nearly every step. Those that Python begins by itself
// come after ten of the generation before.
std::vector<Row> called_collections(const Context& context, const std::vector<Row>& collections) {
  constexpr int64_t kYoungForFull = 10;
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::vector<Row> full;
  int64_t young = 0;
  bool by_name = false;
  for (const Row row : collections) {
    const bool is_call = analyze::is_gc_call(model.text(host.name[row]));
    by_name = by_name || is_call;
    if (is_call || host.role[row] == HostRole::kFullCollection) full.push_back(row);
    young += host.role[row] == HostRole::kYoungCollection ? 1 : 0;
  }
  int64_t steps = 0;
  int64_t with = 0;
  for (const analyze::FoundStep& step : context.study->steps.steps) {
    if (step.warm_up) continue;
    ++steps;
    with +=
        std::any_of(full.begin(), full.end(),
                    [&](Row row) { return host.start_ns[row] >= step.start_ns && host.start_ns[row] < step.end_ns; })
            ? 1
            : 0;
  }
  const bool in_all = context.study->steps.source != analyze::StepSource::kWholeTrace && 10 * with >= 9 * steps;
  const bool is_called = by_name || (steps > 1 && young < kYoungForFull * static_cast<int64_t>(full.size()));
  return in_all && is_called ? full : std::vector<Row>{};
}

std::vector<Finding> find_gc(const Context& context) {
  const int64_t cost = activity_ns(context, analyze::Activity::kGc);
  if (cost == 0) return {};
  const Model& model = context.model;
  std::vector<Row> rows;
  const analyze::HostChain& chain = context.study->host->chains[0];
  for (const analyze::HostSegment& segment : chain.segments) {
    if (segment.activity == analyze::Activity::kGc && context.in_window(segment.start_ns))
      rows.push_back(segment.slice);
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  Finding finding{.id = "gc-pauses", .cost_ns = cost, .share_of_step = context.share_of_step(cost)};
  const auto gain_if = [&](double keep) {
    return context.gain_ns({.host = cuts_of(context, {analyze::Activity::kGc}, keep)});
  };
  set_gain_of_all(context, {gain_if(0.03), gain_if(0)}, finding);
  finding.events = static_cast<int64_t>(rows.size());
  const std::vector<Row> called = called_collections(context, rows);
  finding.title = "Python's garbage collector stops the program " + counted(finding.events, "time", "times") + " for " +
                  short_time(cost) + " of each step (" + short_percent(finding.share_of_step) + ")";
  finding.try_text = "run the collector between steps, at times that you choose";
  finding.try_code = "gc.freeze(); gc.disable()  # before the loop; gc.collect() every 1000 steps";
  if (!called.empty()) {
    const Row longest = *std::max_element(called.begin(), called.end(), [&](Row a, Row b) {
      return model.host_slices.duration_ns[a] < model.host_slices.duration_ns[b];
    });
    const analyze::CodeStretch at{.start_ns = model.host_slices.start_ns[longest],
                                  .end_ns = model.host_slices.end_ns(longest)};
    const std::string place = place_text(context, at, "; called ");
    finding.title = "gc.collect() in every step scans all objects of the program: " + short_time(cost) +
                    " of each step (" + short_percent(finding.share_of_step) + ")" + place;
    finding.try_text =
        "leave it out: a tensor is freed as soon as its last reference is gone, and PyTorch keeps its memory either "
        "way; if reference cycles pile up, collect now and then";
    finding.try_code = "if step % 1000 == 0: gc.collect()  # and gc.freeze() once, before the loop";
  }
  add_longest(finding, model, std::move(rows));
  finding.confidence = Confidence::kHigh;
  return {finding};
}

// Code of the program runs at the same place in step after step. A stretch at a place that other steps pass quickly is
// a slow step, with a finding of its own, or nothing of the program's: the thread had no core. The same goes for what
// one stretch is longer than those of its place.
void keep_what_comes_again(const Context& context, std::vector<analyze::CodeStretch>& stretches) {
  constexpr int64_t kFewSteps = 3;
  constexpr int64_t kTimesItsPlace = 3;
  struct Seen {
    std::vector<int64_t> longest;  // by step that has one
    size_t step = SIZE_MAX;
  };
  const std::vector<analyze::FoundStep>& steps = context.study->steps.steps;
  std::map<Place, Seen> places;
  std::vector<Place> place_by_stretch;
  size_t step = 0;
  for (const analyze::CodeStretch& each : stretches) {
    while (step + 1 < steps.size() && each.start_ns >= steps[step + 1].start_ns) ++step;
    place_by_stretch.push_back(place_of(context, each, steps[step]));
    Seen& seen = places[place_by_stretch.back()];
    if (seen.step != step) seen.longest.push_back(0);
    seen.step = step;
    seen.longest.back() = std::max(seen.longest.back(), each.end_ns - each.start_ns);
  }
  if (context.step_count < kFewSteps) return;
  std::vector<analyze::CodeStretch> kept;
  for (size_t i = 0; i < stretches.size(); ++i) {
    const Seen& seen = places[place_by_stretch[i]];
    if (2 * static_cast<int64_t>(seen.longest.size()) < context.step_count) continue;
    kept.push_back(stretches[i]);
    const int64_t most_ns = kTimesItsPlace * analyze::median(seen.longest);
    kept.back().end_ns = std::min(kept.back().end_ns, kept.back().start_ns + most_ns);
  }
  stretches = std::move(kept);
}

// Lists of Python numbers that become tensors (torch.tensor(list), or a list as an index): aten::empty, aten::to and
// aten::lift_fresh in a row, with the list read before the first and between the first two. Each is too short for a
// stretch of its own.
std::vector<analyze::CodeStretch> lists_made_tensors(const Context& context) {
  constexpr int64_t kLeastFillNs = 10'000;  // fewer numbers are no matter
  constexpr int64_t kTimesTheFill = 4;      // reading the list takes about as long as filling the tensor
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  const auto& phases = context.trace.get<analyze::find_phases>();
  const auto lane = static_cast<size_t>(context.study->host->chains[0].lanes[0]);
  std::vector<analyze::CodeStretch> out;
  std::array<Row, 4> last = {kNoRow, kNoRow, kNoRow, kNoRow};  // outermost ops, the newest last
  for (Row row = model.lanes.host_begin[lane]; row < model.lanes.host_end[lane]; ++row) {
    if (!is_outermost_op(host, row) || !context.in_window(host.start_ns[row])) continue;
    last = {last[1], last[2], last[3], row};
    const auto is = [&](size_t at, std::string_view name) {
      return last[at] != kNoRow && model.text(host.name[last[at]]) == name;
    };
    if (!is(1, "aten::empty") || !is(2, "aten::to") || !is(3, "aten::lift_fresh")) continue;
    if (phases.host[last[1]] == analyze::Phase::kData) continue;  // waiting for data is another finding
    const int64_t fill_ns = host.start_ns[last[2]] - host.end_ns(last[1]);
    if (fill_ns < kLeastFillNs) continue;
    int64_t from_ns = host.start_ns[last[1]];
    if (last[0] != kNoRow && from_ns - host.end_ns(last[0]) <= kTimesTheFill * fill_ns) from_ns = host.end_ns(last[0]);
    out.push_back({.start_ns = from_ns, .end_ns = host.end_ns(last[3])});
  }
  return out;
}

// Long stretches without any operator: files, logs, plots, environments, text, data that no DataLoader loads.
std::vector<Finding> find_host_code(const Context& context) {
  const Model& model = context.model;
  const analyze::Study& study = *context.study;
  if (study.host->chains.empty() || study.steps.source == analyze::StepSource::kWholeTrace) return {};
  const analyze::HostChain& chain = study.host->chains[0];
  std::vector<analyze::CodeStretch> stretches = context.trace.get<code_stretches>();
  for (const HostWork& work : context.trace.get<host_work>()) {
    const auto gives_back = [&](const analyze::CodeStretch& each) {
      return std::any_of(work.giving_back.begin(), work.giving_back.end(), [&](const analyze::Interval& back) {
        return back.start_ns >= each.start_ns && back.start_ns < each.end_ns;
      });
    };
    std::erase_if(stretches,
                  [&](const analyze::CodeStretch& each) { return work.holds(each.start_ns) || gives_back(each); });
  }
  keep_what_comes_again(context, stretches);
  int64_t lists_ns = 0;
  const size_t long_ones = stretches.size();
  for (const analyze::CodeStretch& list : lists_made_tensors(context)) {
    const bool is_in_one =
        std::any_of(stretches.begin(), stretches.begin() + static_cast<std::ptrdiff_t>(long_ones),
                    [&](const auto& each) { return list.start_ns < each.end_ns && each.start_ns < list.end_ns; });
    if (is_in_one || context.has_device_work) continue;  // copies to a device are other findings' matter
    lists_ns += list.end_ns - list.start_ns;
    stretches.push_back(list);
  }
  if (stretches.empty()) return {};
  std::sort(stretches.begin(), stretches.end(), [](const analyze::CodeStretch& a, const analyze::CodeStretch& b) {
    return a.end_ns - a.start_ns > b.end_ns - b.start_ns;
  });
  analyze::WhatIf change;
  Finding finding{.id = "host-code"};
  for (const analyze::CodeStretch& each : stretches) {
    change.host.push_back({chain.lanes[0], each.start_ns, each.end_ns, 0});
    finding.cost_ns += each.end_ns - each.start_ns;
    if (finding.ranges.size() < kEvidenceRanges) finding.ranges.push_back({each.start_ns, each.end_ns});
  }
  finding.cost_ns = study.per_step(finding.cost_ns);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  const int64_t gain_ns = context.gain_ns(change);
  set_gain_of_all(context, {gain_ns, gain_ns}, finding);
  finding.events = static_cast<int64_t>(stretches.size());
  const Row function = stretches.front().slice;
  finding.title = "time outside PyTorch operators (Python code, I/O or another library) takes " +
                  short_time(finding.cost_ns) + " of each step (" + short_percent(finding.share_of_step) + ")" +
                  (function != kNoRow ? ", most in " + std::string(model.text(model.host_slices.name[function]))
                                      : place_text(context, stretches.front(), "; the longest gap is "));
  if (lists_ns > 0) {
    finding.title += "; " + short_time(study.per_step(lists_ns)) + " of it converts Python lists to tensors";
  }
  if (function != kNoRow) finding.slices.push_back({.row = function, .on_device = false});
  finding.try_text = "do it less often, move it to another thread or process, or load data with DataLoader workers";
  finding.try_code = "if step % 100 == 0: log(...)  # no files, plots or logs in most steps";
  if (2 * study.per_step(lists_ns) > finding.cost_ns) {
    finding.try_text =
        "keep numbers in tensors instead of lists: a list is converted again for every operator that takes it";
    finding.try_code = "for part in torch.randperm(n).split(size): x[part]  # instead of shuffled lists";
  }
  finding.confidence = function == kNoRow ? Confidence::kMedium : Confidence::kHigh;
  if (function == kNoRow)
    finding.confirm_by = "record with " + context.flag(RecordOption::kStacks) + ", to see which function it is";
  return {finding};
}

}  // namespace

std::vector<Rule> host_code_rules() {
  return {
      {"host-compute", "host", 0.05, true,
       "Operators work on tensors in host memory while the device waits: a mask, a bias or a batch that is built on\n"
       "the CPU and then copied. This is not launch overhead: neither CUDA graphs nor a larger batch help.\n\n"
       "This finding counts operators of the training thread that launch nothing and take 0.1 ms or more, together\n"
       "with the copies that bring their inputs from the device, the copy that follows them, and freeing their\n"
       "memory. The gain is a replay without them.\n\n"
       "What to do: create the tensor with device=\"cuda\"; keep it if it is the same in every step; preprocess\n"
       "batches on the device or in DataLoader workers; compute on the device with data that is already there,\n"
       "without calling .cpu() first.\n\n"
       "When not: the data cannot be on the device, and preparing it in another thread or process is not possible.",
       find_host_compute},
      {"gc-pauses", "host", 0.01, true,
       "Python's cyclic garbage collector stops the thread while it scans all objects, and a model has many. Or the\n"
       "program calls gc.collect() in every step, which scans all of them each time. That is detected as a full\n"
       "collection in nine of ten steps, without the ten smaller ones that precede each automatic full collection.\n\n"
       "What to do: gc.freeze() after building the model, gc.disable(), and gc.collect() every few hundred steps.\n"
       "Collecting in each step does not return device memory: PyTorch's allocator keeps the freed blocks.\n\n"
       "When not: programs that create reference cycles with tensors in them grow without collection.",
       find_gc},
      {"host-code", "host", 0.10, true,
       "For a while the training thread calls no operator: it reads files, writes logs, plots, sleeps, splits text,\n"
       "or works on data in plain Python, NumPy or another library. Meanwhile nothing is computed or launched.\n\n"
       "This finding counts gaps between two operators that are ten times as long as the typical one (the threshold\n"
       "is 100 us to 1 ms), at places (after one operator and before another) where at least half of the steps have\n"
       "one. Shorter gaps are dispatch time, which launch-overhead counts, as it does the Python code of optimizers\n"
       "and the start of a backward pass. On a CPU, converting lists of Python numbers to tensors counts as well,\n"
       "however short. The gain is a replay without these gaps.\n\n"
       "What to do: do it less often, or in another thread or process; load data with DataLoader workers.\n\n"
       "When not: this work is the purpose of the program. with_stack=True shows which function it is.",
       find_host_code},
  };
}

}  // namespace firelane::advise

// Loops that call the same few operators many times in a step, where one batched call would be enough.
#include <algorithm>
#include <map>
#include <utility>

#include "advise/gain.h"
#include "advise/host_evidence.h"
#include "advise/loops.h"
#include "advise/rule.h"
#include "advise/sliced_gradients.h"
#include "advise/text.h"
#include "analyze/host/dispatch.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

constexpr size_t kShortBody = 3;  // a number is computed and read
// What a kernel takes however little it does: of many small ones in a row, the batched one pays that once.
constexpr double kLeastKernelNs = 2'000;

// Share of what small operators compute on a CPU: setting up, first touches, vectors that are not full. A batched one
// does without; the rest of the computing stays.
constexpr double kSmallPart = 0.35;

analyze::WhatIf without(const Context& context, const std::vector<const analyze::Loop*>& loops, double keep_host,
                        bool larger_kernels) {
  const Model& model = context.model;
  analyze::WhatIf change;
  const analyze::HostChain& chain = context.study->host->chains[0];
  const std::vector<double>& dispatch = context.study->dispatch;  // without a device, what operators compute stays
  std::vector<const analyze::Loop*> sorted = loops;
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
  const auto cut = [&](const analyze::Loop& loop, int64_t start_ns, int64_t end_ns) {
    if (context.has_device_work) {
      change.host.push_back({loop.lane, start_ns, end_ns, keep_host});
      return;
    }
    for (size_t i = chain.segment_after(start_ns); i < chain.segments.size(); ++i) {
      const analyze::HostSegment& segment = chain.segments[i];
      if (segment.start_ns >= end_ns) break;
      change.host.push_back({chain.lanes[0], std::max(segment.start_ns, start_ns), std::min(segment.end_ns, end_ns),
                             1 - (1 - keep_host) * (dispatch[i] + kSmallPart * (1 - dispatch[i]))});
    }
  };
  for (const analyze::Loop* loop : sorted) {
    if (loop->gathering_start_ns != kNoNumber) cut(*loop, loop->gathering_start_ns, loop->start_ns);
    cut(*loop, loop->second_start_ns, loop->end_ns);
  }
  const auto loop_at = [&](LaneId lane, int64_t time_ns) -> const analyze::Loop* {
    auto after = std::partition_point(sorted.begin(), sorted.end(),
                                      [&](const analyze::Loop* loop) { return loop->start_ns <= time_ns; });
    while (after != sorted.begin()) {
      const analyze::Loop* loop = *--after;
      if (loop->lane == lane) return time_ns >= loop->second_start_ns && time_ns < loop->end_ns ? loop : nullptr;
    }
    return nullptr;
  };
  const HostSlices& host = model.host_slices;
  for (const analyze::SyncRow& sync : context.study->syncs.rows) {
    if (loop_at(host.lane[sync.call], sync.start_ns) != nullptr) change.waits.push_back(sync.call);
  }
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    const Row launch = model.device_slices.launch[row];
    if (launch == kNoRow || !is_device_work(model.device_slices.kind[row])) continue;
    const analyze::Loop* loop = loop_at(host.lane[launch], host.start_ns[launch]);
    if (loop == nullptr) continue;
    const auto ns = static_cast<double>(std::max<int64_t>(1, model.device_slices.duration_ns[row]));
    const double keep = std::max(1.0 - kLeastKernelNs / ns, 1.0 / static_cast<double>(loop->rounds));
    change.device.push_back({row, larger_kernels ? keep : (1 + keep) / 2});
  }
  return change;
}

// Whether a round takes a piece of a tensor.
bool picks(const Model& model, const analyze::Loop& loop) {
  const HostSlices& host = model.host_slices;
  for (Row row = loop.body.front(); row < host.size() && host.start_ns[row] < loop.second_start_ns; ++row) {
    const std::string_view name = model.text(host.name[row]);
    if (host.lane[row] == loop.lane && (name == "aten::select" || name == "aten::slice" || name == "aten::index"))
      return true;
  }
  return false;
}

struct Remedy {
  const char* text;
  const char* code;
};

// What one call instead of all rounds looks like, by what a round does.
Remedy remedy_for(const Model& model, const analyze::Loop& loop) {
  bool cell = false;
  bool embeds = false;
  bool gathers = false;
  bool multiplies = false;
  bool convolves = false;
  bool in_place = true;
  for (const Row row : loop.body) {
    const std::string_view name = model.text(model.host_slices.name[row]);
    cell = cell || name.ends_with("_cell");
    embeds = embeds || name.starts_with("aten::embedding");
    gathers = gathers || name == "aten::index" || name == "aten::index_select" || name.starts_with("aten::index_add");
    multiplies = multiplies || name == "aten::linear" || name == "aten::matmul" || name == "aten::mm" ||
                 name == "aten::addmm" || name == "aten::bmm";
    convolves = convolves || contains(name, "conv");
    in_place = in_place && name.ends_with('_');
  }
  if (cell) {
    return {"run the whole sequence in one call: nn.LSTM, nn.GRU or nn.RNN instead of a cell for each time step",
            "output, state = nn.LSTM(size, size)(sequence)  # instead of for x in sequence: state = cell(x, state)"};
  }
  if (loop.chained) {
    return {
        "each iteration needs the one before it: run several sequences as one batch, compile the body of the loop, or "
        "use an "
        "operator for the whole recurrence (nn.LSTM, cumsum, cumprod)",
        "step = torch.compile(step)  # or x of shape [sequences, ...] instead of one after the other"};
  }
  if (loop.same && convolves) {
    return {"convolve once with all filters, as channels of the result: it reads the input once",
            "y = F.conv1d(x, filters)  # filters: [count, channels, length]; instead of F.conv1d(x, f[None]) for f in "
            "filters"};
  }
  if (loop.items && !embeds && !multiplies && !gathers && !loop.reads && !picks(model, loop)) {
    return {
        "do it for all tensors of the list in one call: torch._foreach_* takes lists, and a penalty on all weights "
        "is the optimizer's weight_decay",
        "norms = torch._foreach_norm(list(model.parameters()))  # instead of [p.norm() for p in parameters]"};
  }
  if (embeds) {
    return {"do all lookups in one call: one embedding table with offsets, or all ids in one tensor",
            "nn.EmbeddingBag(rows_of_all_tables, size)  # ids of table i plus the rows of those before it"};
  }
  if (in_place) {
    return {"update all tensors in one call",
            "torch._foreach_mul_(tensors, 0.9)  # instead of for t in tensors: t.mul_(0.9)"};
  }
  if (loop.reads && !multiplies) {
    return {
        "compute all of them first and read them back once",
        "values = torch.stack([x.norm() for x in xs]).tolist()  # or torch._foreach_norm(xs), instead of .item() each"};
  }
  if (gathers && !multiplies) {
    return {"do all iterations in one call over all indices: index_add, scatter_reduce, or a sorted batch",
            "out = torch.zeros_like(x).index_add_(0, target, x[source])  # instead of one sum for each target"};
  }
  if (multiplies) {
    return {"do all iterations in one call: stack the pieces along a dimension and use the batched operator",
            "y = torch.bmm(x, w)  # instead of [x[i] @ w[i] for i in range(n)]"};
  }
  return {"do all iterations in one call: stack the pieces along a dimension, or let torch.func.vmap do it",
          "y = torch.func.vmap(f)(x)  # instead of [f(x[i]) for i in range(n)]"};
}

std::vector<Finding> find_repeated(const Context& context) {
  if (context.study == nullptr || context.study->host->chains.empty()) return {};
  const Model& model = context.model;
  const HostSlices& host = model.host_slices;
  std::vector<const analyze::Loop*> chosen;
  const analyze::Loop* longest = nullptr;
  std::map<StringId, int64_t> loops_with;  // by the body's first operator
  for (const analyze::Loop& loop : context.trace.get<analyze::loops>()) {
    if (!loop.backward && only_reads(loop)) continue;
    chosen.push_back(&loop);
    if (loop.backward) continue;
    ++loops_with[host.name[loop.body[0]]];
    if (longest == nullptr || loop.end_ns - loop.start_ns > longest->end_ns - longest->start_ns) longest = &loop;
  }
  std::vector<Finding> findings = sliced_gradients(context);
  if (longest == nullptr) return findings;
  Finding finding{.id = "repeated-operators"};
  fill_from_loops(context, chosen, finding);
  const int64_t times = std::max<int64_t>(1, loops_with[host.name[longest->body[0]]] / context.step_count);
  finding.title = "a loop calls " + body_text(model, *longest) + " " + counted(longest->rounds, "time", "times") +
                  " in a row" + (times > 1 ? ", " + std::to_string(times) + " times a step" : "") +
                  (longest->passes  ? ", with a backward pass each time"
                   : longest->reads ? ", and waits for a number each time"
                   : longest->items ? ", each time for other tensors of a list"
                                    : "");
  if (longest->chained) finding.title += ", each from the result of the one before";
  if (longest->python != kNoRow) finding.title += ", in " + std::string(model.text(host.name[longest->python]));
  finding.title += ": " + short_time(finding.cost_ns) + " of each step (" + short_percent(finding.share_of_step) + ")";
  for (const Row row : longest->body) {
    if (finding.slices.size() < kEvidenceSlices) finding.slices.push_back({.row = row, .on_device = false});
  }
  finding.ranges.push_back({longest->start_ns, longest->end_ns});
  const Remedy remedy = remedy_for(model, *longest);
  finding.try_text = remedy.text;
  finding.try_code = remedy.code;
  finding.confidence = longest->chained ? Confidence::kLow : Confidence::kMedium;
  finding.confirm_by = longest->python == kNoRow && !knows_lines(context)
                           ? "record with " + context.flag(RecordOption::kLines) + ", to see the line of the loop"
                           : "batch the loop and compare step times";
  finding.part_of = "overhead";
  finding.cause = "loop";
  findings.push_back(std::move(finding));
  return findings;
}

}  // namespace

double kept_in_batch(const Context& context, const std::vector<double>& dispatch, int64_t start_ns, int64_t end_ns) {
  const analyze::HostChain& chain = context.study->host->chains[0];
  double kept_ns = 0;
  double all_ns = 0;
  for (size_t i = chain.segment_after(start_ns); i < chain.segments.size(); ++i) {
    const analyze::HostSegment& segment = chain.segments[i];
    if (segment.start_ns >= end_ns) break;
    const auto ns = static_cast<double>(std::min(segment.end_ns, end_ns) - std::max(segment.start_ns, start_ns));
    all_ns += ns;
    kept_ns += (1 - kSmallPart) * (1 - dispatch[i]) * ns;
  }
  return all_ns <= 0 ? 0 : kept_ns / all_ns;
}

bool only_reads(const analyze::Loop& loop) { return loop.reads && loop.body.size() <= kShortBody; }

void fill_from_loops(const Context& context, const std::vector<const analyze::Loop*>& loops, Finding& finding) {
  int64_t spent_ns = 0;
  finding.events = 0;
  for (const analyze::Loop* loop : loops) {
    spent_ns += context.took_ns(loop->start_ns, loop->end_ns);
    finding.events += loop->rounds;
  }
  // Share of the recorded time, waits for a core excluded on both sides: what stays without the recorder's part.
  const Context calls = with_true_calls(context);
  const int64_t steps = std::max<int64_t>(1, context.step_count);
  const int64_t took_ns = context.took_ns(context.window.start_ns, context.window.end_ns) / steps;
  const double kept =
      took_ns <= 0 ? 1 : std::min(1.0, static_cast<double>(calls.step_ns) / static_cast<double>(took_ns));
  finding.cost_ns = static_cast<int64_t>(static_cast<double>(spent_ns / steps) * kept);
  finding.share_of_step = calls.share_of_step(finding.cost_ns);
  // A number of each of many tensors, whose sizes differ: they stay a list, and the call that takes it does a part of a
  // round for each. Numbers of one tensor come together.
  const bool is_list = std::all_of(loops.begin(), loops.end(), [&](const auto* loop) {
    return only_reads(*loop) && loop->body.size() > 1 && !picks(context.model, *loop);
  });
  const double keep_low = is_list ? 0.25 : 0.02;
  const double keep_high = is_list ? 0.1 : 0;
  finding.of_step_ns = calls.step_ns;
  finding.gain.low_ns = std::max<int64_t>(0, calls.gain_ns(without(context, loops, keep_low, false)));
  finding.gain.high_ns = std::max(finding.gain.low_ns, calls.gain_ns(without(context, loops, keep_high, true)));
}

std::string body_text(const Model& model, const analyze::Loop& loop) {
  constexpr size_t kNamed = 4;
  std::vector<std::string_view> names;
  for (const Row row : loop.body) {
    const std::string_view name = model.text(model.host_slices.name[row]);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamed); ++i) text += (i == 0 ? "" : ", ") + std::string(names[i]);
  if (names.size() > kNamed) text += " and " + std::to_string(names.size() - kNamed) + " more operators";
  return text;
}

std::vector<Rule> loops_rules() {
  return {
      {"repeated-operators", "host", 0.05, true,
       "A Python loop calls the same few operators for one element, time step, table or expert after another. Each "
       "call\n"
       "costs the host the same, however little it computes, and each kernel is too small to fill the device.\n\n"
       "This finding covers at least eight iterations of the same operators in a row, in which each iteration takes\n"
       "its piece of a tensor (select, slice, index, embedding), reads a number or a size, runs a recurrent cell,\n"
       "or changes a tensor in place. Iterations may differ by an operator or two (one image is flipped, another is\n"
       "not). Their backward operators are included. Layers of a model repeat as well: iterations with\n"
       "normalization, convolution or attention count only if they share their weights or have a backward pass of\n"
       "their own. The gain is a replay with one iteration left, whose kernels do the work of all. Where the\n"
       "recording follows tensors (firelane record does), iterations that each continue from the previous one's\n"
       "result are recognized: with their own weights they are layers, not a loop; with the same weights they are a\n"
       "recurrence. Iterations that all work on the same tensors are a loop, whatever they compute, such as a\n"
       "convolution with one filter after another.\n\n"
       "What to do: one call on a batch: bmm instead of a loop over experts or heads, nn.LSTM instead of LSTMCell, "
       "one\n"
       "embedding table with offsets, index_add or scatter over all indices, torch.func.vmap.\n\n"
       "When not: iterations that depend on each other and have no batched operator; there, CUDA graphs help.",
       find_repeated},
  };
}

}  // namespace firelane::advise

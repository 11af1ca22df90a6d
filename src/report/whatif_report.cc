// `firelane whatif`: how long a step would take if something cost less.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "analyze/verdict/study.h"
#include "report/registry.h"
#include "report/shared.h"

namespace firelane::report {

namespace {

constexpr double kMostFactor = 100;

void leave_out(const Model& model, const analyze::Study& study, std::string_view what, analyze::WhatIf& change) {
  if (what == "syncs") {
    for (const analyze::SyncRow& sync : study.syncs.rows) {
      change.waits.push_back(sync.call);
      change.host.push_back({model.host_slices.lane[sync.call], sync.start_ns, sync.start_ns + sync.duration_ns, 0});
    }
    return;
  }
  const analyze::Activity unwanted = what == "input" ? analyze::Activity::kInput
                                     : what == "gc"  ? analyze::Activity::kGc
                                                     : analyze::Activity::kLoading;
  for (const analyze::HostChain& chain : study.host->chains) {
    for (const analyze::HostSegment& segment : chain.segments) {
      if (segment.activity == unwanted) change.host.push_back({chain.lanes[0], segment.start_ns, segment.end_ns, 0});
    }
  }
}

struct KernelChange {
  std::string_view name;
  double factor = 1;
};

// "gemm=0.5": kernels whose name contains gemm take half as long. Nothing when it is not of that form.
std::optional<KernelChange> parse_kernel_change(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  KernelChange change{.name = text.substr(0, equals)};
  const std::string_view digits = text.substr(equals + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), change.factor);
  const bool is_number = parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size();
  // Written so that NaN fails, too.
  return is_number && change.factor >= 0 && change.factor <= kMostFactor ? std::optional(change) : std::nullopt;
}

std::string check_kernel_change(std::string_view text) {
  return parse_kernel_change(text) ? "" : "must be NAME=FACTOR, for example gemm=0.5";
}

Result<void> scale_kernels(const Model& model, const std::string& text, analyze::WhatIf& change) {
  const std::optional<KernelChange> wanted = parse_kernel_change(text);
  size_t found = 0;
  for (Row row = 0; wanted && row < model.device_slices.size(); ++row) {
    if (model.text(model.device_slices.name[row]).find(wanted->name) == std::string_view::npos) continue;
    change.device.push_back({row, wanted->factor});
    ++found;
  }
  if (found == 0) return Error{"kernel " + text + ": no device work has such a name; firelane kernels lists them"};
  return {};
}

bool changes_device(const Arguments& wanted) {
  return std::ranges::any_of(std::array{"kernels", "communication", "copies", "latency"},
                             [&](const char* name) { return wanted.number(name) != 1; });
}

Result<Report> make_whatif(const StudiedTrace& trace, const Arguments& wanted) {
  const auto& study = trace.get<analyze::study>();
  analyze::WhatIf change{.keep_host = wanted.number("host"),
                         .keep_kernels = wanted.number("kernels"),
                         .keep_communication = wanted.number("communication"),
                         .keep_copies = wanted.number("copies"),
                         .keep_latency = wanted.number("latency")};
  if (wanted.flag("data_order")) {
    if (trace.model().data_dependencies.size() == 0) {
      return Error{"data-order: the trace does not say which operator needs whose data; add --execution-trace FILE"};
    }
    change.data_order_only = true;
  }
  for (const std::string& what : wanted.texts("without")) leave_out(trace.model(), study, what, change);
  for (const std::string& kernel : wanted.texts("kernel")) FL_TRY_VOID(scale_kernels(trace.model(), kernel, change));
  const int64_t before = study.mean_step_ns();
  const int64_t gain = study.gain_ns(change);
  const int64_t after = before - gain;
  const double faster = after <= 0 ? 0 : static_cast<double>(before) / static_cast<double>(after);
  Report report{.facts = {{"usual_ns", "Step", Kind::kDuration, study.usual_step_ns},
                          {"usual_recorded_ns", recorded_label(study), Kind::kDuration, study.usual_recorded_ns},
                          {"step_ns", "Step now, on average", Kind::kDuration, before},
                          {"recorded_ns", recorded_label(study), Kind::kDuration, study.undone.recorded_ns},
                          {"changed_ns", "Step then, on average", Kind::kDuration, after},
                          {"gain_ns", "Saved", Kind::kDuration, gain},
                          {"gain_percent", "Saved", Kind::kPercent, percent_of(gain, before)},
                          {"times_as_fast", "Times as fast", Kind::kNumber, faster}}};
  if (!study.has_device_work && (changes_device(wanted) || wanted.flag("data_order"))) {
    report.notes.emplace_back(
        "no device work in this trace: scaling kernels, communication, copies or latency changes nothing",
        "--host 0.5 halves the CPU's work");
  }
  return report;
}

Parameter factor_of(std::string name, const std::string& what) {
  Parameter parameter = Parameter::number(std::move(name), 0, kMostFactor, "FACTOR",
                                          what + " takes this fraction of its time (1 = unchanged, 0 = free)");
  parameter.fallback = 1.0;
  return parameter;
}

}  // namespace

ReportSpec whatif_report() {
  return {
      .name = "whatif",
      .title = "What if",
      .sentence = "Estimate how long a step would take if something cost less, by replaying the trace's dependencies.",
      .examples = {"firelane whatif trace.json.gz --without input",
                   "firelane whatif trace.json.gz --kernel gemm=0.5 --host 0.8"},
      .parameters = {factor_of("host", "the host's own work"),
                     factor_of("kernels", "device compute"),
                     factor_of("communication", "communication"),
                     factor_of("copies", "memcpy and memset"),
                     factor_of("latency", "latency from launch to start"),
                     Parameter::flag("data_order",
                                     "device work waits for its launch and its data, but not for earlier work on its "
                                     "stream (needs an execution trace)"),
                     {.name = "without",
                      .type = ParameterType::kTexts,
                      .help = "leave this out; may be repeated",
                      .choices = {"input", "gc", "loading", "syncs"}},
                     {.name = "kernel",
                      .type = ParameterType::kTexts,
                      .help = "device work whose name contains NAME takes FACTOR of its time; may be repeated",
                      .value_name = "NAME=FACTOR",
                      .check = check_kernel_change}},
      .make = make_whatif,
      .python_form = PythonForm::kDict};
}

}  // namespace firelane::report

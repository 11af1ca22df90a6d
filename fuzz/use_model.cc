#include "use_model.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <tuple>
#include <utility>

#include "analyze/compute/fusion.h"
#include "analyze/device/kernels.h"
#include "analyze/modules/modules.h"
#include "analyze/ops/ops.h"
#include "analyze/steps/steps.h"
#include "analyze/trace/info.h"
#include "analyze/trace/lanes.h"
#include "analyze/verdict/cost.h"
#include "analyze/verdict/study.h"
#include "base/check.h"
#include "compare/difference/difference.h"
#include "compare/flame/flame.h"
#include "import/load.h"
#include "import/reader.h"
#include "report/comparison.h"
#include "report/registry.h"
#include "report/trace_report.h"
#include "traces/studied_trace.h"

namespace firelane::fuzz {
namespace {

void check_row(Row row, size_t size) { FL_CHECK(row == kNoRow || row < size, "a row must lie in its table"); }

void check_text(const Model& model, StringId id) {
  FL_CHECK(static_cast<size_t>(id) < model.strings.size(), "a string id must lie in the pool");
}

template <typename Slices>
void check_slices(const Model& model, const Slices& slices, const std::vector<Row>& begin,
                  const std::vector<Row>& end) {
  for (size_t lane = 0; lane < model.lanes.size(); ++lane) {
    FL_CHECK(begin[lane] <= end[lane] && end[lane] <= slices.size(), "a lane's range must lie in its table");
    for (Row row = begin[lane]; row < end[lane]; ++row) {
      FL_CHECK(static_cast<size_t>(slices.lane[row]) == lane, "a lane's range must hold its slices only");
      FL_CHECK(slices.duration_ns[row] >= 0, "a duration must not be negative");
      FL_CHECK(slices.end_ns(row) >= slices.start_ns[row], "an end must not overflow");
      FL_CHECK(row == begin[lane] || slices.start_ns[row - 1] <= slices.start_ns[row], "slices must be sorted");
      check_text(model, slices.name[row]);
      check_text(model, slices.category[row]);
    }
  }
}

void check_host(const Model& model) {
  const HostSlices& host = model.host_slices;
  check_slices(model, host, model.lanes.host_begin, model.lanes.host_end);
  for (Row row = 0; row < host.size(); ++row) {
    const Row parent = host.parent[row];
    check_row(parent, row);  // parents stand before their children
    if (parent == kNoRow) continue;
    FL_CHECK(host.lane[parent] == host.lane[row], "a parent must be on the same lane");
    FL_CHECK(host.start_ns[parent] <= host.start_ns[row] && host.end_ns(parent) >= host.end_ns(row),
             "a parent must cover its child");
  }
}

void check_links(const Model& model) {
  const size_t hosts = model.host_slices.size();
  const DeviceSlices& device = model.device_slices;
  check_slices(model, device, model.lanes.device_begin, model.lanes.device_end);
  for (Row row = 0; row < device.size(); ++row) {
    check_row(device.launch[row], hosts);
    check_row(device.op[row], hosts);
    check_row(device.comm[row], model.comm_details.size());
  }
  for (const Row row : model.op_details.slice) check_row(row, hosts);
  for (const Row row : model.op_details.forward) check_row(row, hosts);
  for (const Row row : model.call_details.slice) check_row(row, hosts);
  for (const Row row : model.call_details.op) check_row(row, hosts);
  for (const Row row : model.kernel_details.slice) check_row(row, device.size());
  for (const Row row : model.steps.slice) check_row(row, hosts);
  for (size_t i = 0; i < model.flows.size(); ++i) {
    for (const SliceRef& end : {model.flows.from[i], model.flows.to[i]}) {
      check_row(end.row, end.on_device ? device.size() : hosts);
    }
  }
  const DataDependencies& data = model.data_dependencies;
  FL_CHECK(std::is_sorted(data.op.begin(), data.op.end()), "data dependencies must be sorted by op");
  for (size_t i = 0; i < data.size(); ++i) {
    FL_CHECK(data.op[i] < model.op_details.size(), "data must be needed by an op");
    check_row(data.producer[i], model.op_details.size());
  }
  for (const uint32_t track : model.counter_samples.track) {
    FL_CHECK(track < model.counter_tracks.size(), "a sample must belong to a track");
  }
}

void check_sorted(std::span<const int64_t> times) {
  FL_CHECK(std::is_sorted(times.begin(), times.end()), "times must be sorted");
}

// Asks for the args of a few events, as the viewer and export do.
void read_args(const Model& model) {
  if (!model.args) return;
  for (Row row = 0; row < std::min<size_t>(model.host_slices.size(), 4); ++row) {
    if (model.host_slices.source[row] == kNoSource) continue;
    (void)model.args->event_json(model.host_slices.source[row]);
  }
}

// FIRELANE_FUZZ_READER names one reader (importer::Reader::format): what others would take is left out.
bool is_wanted(std::string_view bytes) {
  static const char* const wanted = std::getenv("FIRELANE_FUZZ_READER");
  if (wanted == nullptr) return true;
  const auto readers = importer::known_readers();
  const auto found = std::find_if(readers.begin(), readers.end(), [&](const importer::Reader& each) {
    return each.sniff(bytes.substr(0, importer::kSniffBytes));
  });
  return found != readers.end() && found->format == wanted;
}

}  // namespace

void load_and_use(std::string bytes) {
  if (!is_wanted(bytes)) return;
  const unsigned threads = 1 + bytes.size() % 2;
  Result<Model> loaded = importer::load_trace_bytes(std::move(bytes), "fuzz",
                                                    {.threads = threads, .max_content_bytes = uint64_t{4} << 20});
  if (!loaded.ok()) {
    FL_CHECK(!loaded.error().message.empty(), "an error must say something");
    return;
  }
  const StudiedTrace trace(std::move(loaded).value());
  const Model& model = trace.model();
  check_host(model);
  check_links(model);
  check_sorted(model.memory_events.time_ns);
  check_sorted(model.instants.time_ns);
  check_sorted(model.counter_samples.time_ns);
  read_args(model);
  (void)analyze::ops(model, {.group_by_input_shape = true, .group_by_stack = 3});
  (void)analyze::kernel_table(model, {.by_op = true, .by_stream = true});
  (void)analyze::step_table(model);
  (void)analyze::lane_table(model);
  (void)analyze::describe_trace(model);
  // Verdict, every analysis behind it, and what is printed of them: none may fall over a hostile trace.
  (void)report::markdown(trace, report::trace_report(trace, "fuzz"));
  for (const report::ReportSpec& spec : report::all_reports()) {
    for (const report::Form form : {report::Form::kText, report::Form::kJson}) {
      (void)report::render(spec, trace, spec.arguments(), form);
    }
  }
  // With itself: matching, statistics, and the tree of both sides.
  const compare::Run& run = trace.get<compare::summarize>();
  const compare::Difference difference = compare::compare_sides({run}, {run, run});
  (void)report::comparison_text(difference, 15, report::Form::kMarkdown, {});
  const StudiedTrace* const side[] = {&trace};
  for (const auto by : {compare::FlameBy::kDevice, compare::FlameBy::kStack, compare::FlameBy::kOp}) {
    (void)compare::flame_difference(side, side, {.by = by, .batch_ratio = difference.batch_ratio});
  }
  (void)trace.get<analyze::study>().gain_ns({.keep_host = 0.5, .keep_kernels = 0.5, .keep_latency = 0});
  (void)trace.get<analyze::study>().gain_ns({.data_order_only = true});
  (void)analyze::module_table(model, {.by_type = true});
  (void)analyze::cost_of(trace, {.price_per_hour = 1, .samples_per_step = 1, .steps_per_run = 1});
}

}  // namespace firelane::fuzz

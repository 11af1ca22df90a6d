// /api/t/T/slice/REF: everything about one slice, for the panel that opens when it is selected.
#include <simdjson.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/common/median.h"
#include "analyze/common/self_time.h"
#include "analyze/device/device_work.h"
#include "analyze/steps/phases.h"
#include "describe/kineto_args.h"
#include "describe/source_args.h"
#include "serve/handlers.h"
#include "serve/places.h"

namespace firelane::serve {

namespace {

constexpr size_t kMostChildren = 50;
constexpr size_t kMostArrows = 100;

// "" where nothing limits it, or nobody knows what.
std::string_view words_for(OccupancyLimit limit) {
  switch (limit) {
    case OccupancyLimit::kUnknown:
    case OccupancyLimit::kNone: return "";
    case OccupancyLimit::kGrid: return "the grid (too few blocks)";
    case OccupancyLimit::kWarps: return "the GPU's thread limit";
    case OccupancyLimit::kBlocks: return "the GPU's block limit";
    case OccupancyLimit::kRegisters:
    case OccupancyLimit::kSharedMemory: break;
  }
  return name_of(limit);
}

// What the model keeps of an event, when the source cannot be asked: the receiver of visit_host_args and its siblings.
struct ModelArgs {
  const Model& model;
  JsonWriter& out;
  simdjson::dom::parser parser{};

  void number(std::string_view key, int64_t value) { out.field(key, value); }
  void real(std::string_view key, float value) { out.field(key, double{value}); }
  void triple(std::string_view key, int32_t x, int32_t y, int32_t z) {
    out.key(key).begin_array().value(x).value(y).value(z).end_array();
  }
  void text(std::string_view key, StringId value) { out.field(key, model.text(value)); }
  void word(std::string_view key, std::string_view value) { out.field(key, value); }
  void json(std::string_view key, StringId value) {
    const std::string text(model.text(value));
    out.key(key);
    if (parser.parse(text).error() == simdjson::SUCCESS) {
      out.raw(text);
    } else {
      out.value(text);
    }
  }
  void object(StringId value) { json("args", value); }
};

class SliceWriter {
 public:
  SliceWriter(const ServedTrace& trace, const SliceRef& slice)
      : trace_(trace), model_(trace.model()), slice_(slice), host_row_(slice.on_device ? kNoRow : slice.row) {
    // What a device slice was made by stands for it: its op, else its launch.
    const DeviceSlices& device = model_.device_slices;
    if (slice.on_device) host_row_ = device.op[slice.row] != kNoRow ? device.op[slice.row] : device.launch[slice.row];
  }

  Answer write() {
    find_children();
    const auto of = [&](const auto& host, const auto& device) {
      return slice_.on_device ? device[slice_.row] : host[slice_.row];
    };
    const HostSlices& host = model_.host_slices;
    const DeviceSlices& device = model_.device_slices;
    json_.begin_object().field("ref", ref_text(slice_)).field("name", model_.text(of(host.name, device.name)));
    json_.field("kind", slice_.on_device ? name_of(device.kind[slice_.row]) : name_of(host.kind[slice_.row]));
    json_.field("category", model_.text(of(host.category, device.category)));
    json_.field("lane", static_cast<uint32_t>(lane_of(model_, slice_))).field("row", trace_.timeline().row_of(slice_));
    json_.field("start_ns", start_of(model_, slice_)).field("duration_ns", duration_of(model_, slice_));
    json_.field("self_ns", self_ns_);
    write_step();
    write_occupancy();
    write_args();
    write_stack();
    write_module();
    json_.key("parent");
    write_found({.row = slice_.on_device ? kNoRow : host.parent[slice_.row]});
    write_children();
    write_arrows();
    write_same_name();
    json_.end_object();
    return json_answer(std::move(json_));
  }

 private:
  void write_found(const SliceRef& slice) { serve::write_found(json_, model_, trace_.timeline(), slice); }

  // The first row after the descendants of a host slice.
  Row descendants_end(Row row) const {
    const HostSlices& host = model_.host_slices;
    const Row lane_end = model_.lanes.host_end[static_cast<size_t>(host.lane[row])];
    const auto begin = host.start_ns.begin() + row + 1;
    const auto end = host.start_ns.begin() + lane_end;
    return static_cast<Row>(std::lower_bound(begin, end, host.end_ns(row)) - host.start_ns.begin());
  }

  void find_children() {
    self_ns_ = duration_of(model_, slice_);
    if (slice_.on_device) return;
    const HostSlices& host = model_.host_slices;
    analyze::CoveredTime covered;
    for (Row row = slice_.row + 1; row < descendants_end(slice_.row); ++row) {
      if (host.parent[row] != slice_.row) continue;
      children_.push_back(row);
      self_ns_ -= covered.add(host.start_ns[row], host.end_ns(row));
    }
  }

  void write_step() {
    const Steps& steps = trace_.steps();
    const int64_t launched = slice_.on_device ? analyze::launch_start(model_, slice_.row) : kNoNumber;
    const int64_t time_ns = launched != kNoNumber ? launched : start_of(model_, slice_);
    const auto after = std::upper_bound(steps.start_ns.begin(), steps.start_ns.end(), time_ns) - steps.start_ns.begin();
    json_.key("step");
    const auto at = static_cast<size_t>(after) - 1;
    if (after == 0 || time_ns >= steps.start_ns[at] + steps.duration_ns[at]) {
      json_.null();
    } else {
      json_.value(steps.number[at]);
    }
  }

  // As computed where the source lacks it; with what bounds it, which no source has.
  void write_occupancy() {
    const DeviceSlices& device = model_.device_slices;
    const bool is_kernel = slice_.on_device && device.kind[slice_.row] == DeviceKind::kKernel;
    const Row detail = is_kernel ? device.detail[slice_.row] : kNoRow;
    json_.key("occupancy");
    if (detail == kNoRow || !(model_.kernel_details.occupancy_percent[detail] >= 0)) {
      json_.null();
      return;
    }
    json_.begin_object().field("percent", double{model_.kernel_details.occupancy_percent[detail]});
    const OccupancyLimit limit = model_.kernel_details.occupancy_limit[detail];
    json_.field("limit", name_of(limit)).field("limit_text", words_for(limit)).end_object();
  }

  void write_args() {
    json_.key("args");
    const uint64_t source =
        slice_.on_device ? model_.device_slices.source[slice_.row] : model_.host_slices.source[slice_.row];
    if (model_.args != nullptr && source != kNoSource) {
      const Result<std::string> event = model_.args->event_json(source);
      describe::SourceArgs cutter;
      const auto args = event.ok() ? cutter.of(event.value()) : std::nullopt;
      if (args && !args->empty()) {
        json_.raw(*args);
        return;
      }
    }
    json_.begin_object();
    ModelArgs receiver{model_, json_};
    if (slice_.on_device) {
      describe::visit_device_args(model_, slice_.row, receiver);
    } else {
      describe::visit_host_args(model_, slice_.row, receiver);
    }
    json_.end_object();
  }

  // Innermost frame first: as recorded with the op, else the Python functions around it.
  void write_stack() {
    const HostSlices& host = model_.host_slices;
    json_.key("stack").begin_array();
    if (host_row_ != kNoRow) {
      const bool has_details = host.kind[host_row_] == HostKind::kOp && host.detail[host_row_] != kNoRow;
      std::string_view text = has_details ? model_.text(model_.op_details.stack[host.detail[host_row_]]) : "";
      while (!text.empty()) {
        const size_t end = text.find(';');
        json_.value(text.substr(0, end));
        text = end == std::string_view::npos ? "" : text.substr(end + 1);
      }
      if (!has_details || model_.op_details.stack[host.detail[host_row_]] == kNoString) {
        for (Row row = host_row_; row != kNoRow; row = host.parent[row]) {
          if (host.kind[row] == HostKind::kPython) json_.value(model_.text(host.name[row]));
        }
      }
    }
    json_.end_array();
  }

  void write_module() {
    const HostSlices& host = model_.host_slices;
    json_.key("module");
    Row row = host_row_;
    while (row != kNoRow && !analyze::is_module_slice(model_, row)) row = host.parent[row];
    if (row == kNoRow) {
      json_.null();
    } else {
      json_.value(analyze::module_name(model_, row));
    }
  }

  // The longest of them, in order of time.
  void write_children() {
    const size_t count = children_.size();
    const HostSlices& host = model_.host_slices;
    if (count > kMostChildren) {
      std::nth_element(children_.begin(), children_.begin() + kMostChildren, children_.end(), [&](Row a, Row b) {
        return host.duration_ns[a] != host.duration_ns[b] ? host.duration_ns[a] > host.duration_ns[b] : a < b;
      });
      children_.resize(kMostChildren);
      std::sort(children_.begin(), children_.end());
    }
    json_.key("children").begin_array();
    for (const Row child : children_) write_found({.row = child});
    json_.end_array().field("child_count", count);
  }

  void arrow(std::string_view kind, const SliceRef& from, const SliceRef& to) {
    if (arrows_++ >= kMostArrows || from.row == kNoRow || to.row == kNoRow) return;
    json_.begin_object().field("kind", kind).key("from");
    write_found(from);
    json_.key("to");
    write_found(to);
    json_.end_object();
  }

  // op -> launch -> device work.
  void work_arrows(Row device_row, bool with_op) {
    const DeviceSlices& device = model_.device_slices;
    const SliceRef work{.row = device_row, .on_device = true};
    const Row launch = device.launch[device_row];
    const Row op = device.op[device_row];
    if (launch == kNoRow) {
      arrow("launch", {.row = op}, work);
      return;
    }
    if (with_op && op != launch) arrow("op", {.row = op}, {.row = launch});
    arrow("launch", {.row = launch}, work);
  }

  // From the ops whose data it needs, and to those that need its own.
  void data_arrows(Row detail) {
    const DataDependencies& data = model_.data_dependencies;
    const Cells<Row>& slice_of = model_.op_details.slice;
    for (Row row = 0; row < data.size() && arrows_ < kMostArrows; ++row) {
      const bool is_own = data.op[row] == detail || data.producer[row] == detail;
      if (!is_own || data.producer[row] == kNoRow) continue;
      arrow("data", {.row = slice_of[data.producer[row]]}, {.row = slice_of[data.op[row]]});
    }
  }

  void write_arrows() {
    json_.key("arrows").begin_array();
    const LinkIndex& links = trace_.links();
    const HostSlices& host = model_.host_slices;
    if (slice_.on_device) {
      work_arrows(slice_.row, true);
    } else {
      Row last_launch = kNoRow;
      for (const LinkIndex::Link& link : links.device_work(slice_.row, descendants_end(slice_.row))) {
        if (arrows_ >= kMostArrows) break;
        work_arrows(link.to, link.from != last_launch);
        last_launch = link.from;
      }
    }
    const bool is_op = host_row_ != kNoRow && host.kind[host_row_] == HostKind::kOp && host.detail[host_row_] != kNoRow;
    if (is_op) {
      const Row forward = model_.op_details.forward[host.detail[host_row_]];
      if (forward != kNoRow) arrow("backward", {.row = forward}, {.row = host_row_});
      for (const LinkIndex::Link& link : links.backward(host_row_))
        arrow("backward", {.row = link.from}, {.row = link.to});
      data_arrows(host.detail[host_row_]);
    }
    for (size_t i = 0; i < model_.flows.size(); ++i) {
      if (model_.flows.from[i] == slice_ || model_.flows.to[i] == slice_) {
        arrow("flow", model_.flows.from[i], model_.flows.to[i]);
      }
    }
    json_.end_array();
  }

  void write_same_name() {
    const auto refs = trace_.names().slices(name_id_of(model_, slice_));
    const int64_t own_ns = duration_of(model_, slice_);
    std::vector<int64_t> durations;
    durations.reserve(refs.size());
    size_t at = 0;
    int64_t longer = 0;
    for (size_t i = 0; i < refs.size(); ++i) {
      durations.push_back(duration_of(model_, slice_of(refs[i])));
      if (durations.back() > own_ns) ++longer;
      if (refs[i] == ref_of(slice_)) at = i;
    }
    json_.key("same_name").begin_object().field("count", refs.size());
    json_.field("total_ns", trace_.names().total_ns(name_id_of(model_, slice_)));
    json_.field("min_ns", *std::min_element(durations.begin(), durations.end()));
    json_.field("max_ns", *std::max_element(durations.begin(), durations.end()));
    json_.field("median_ns", analyze::median(std::move(durations))).field("longer", longer).key("previous");
    write_found(at > 0 ? slice_of(refs[at - 1]) : SliceRef{});
    json_.key("next");
    write_found(at + 1 < refs.size() ? slice_of(refs[at + 1]) : SliceRef{});
    json_.end_object();
  }

  const ServedTrace& trace_;
  const Model& model_;
  SliceRef slice_;
  Row host_row_;  // the slice, or what launched it
  std::vector<Row> children_;
  int64_t self_ns_ = 0;
  size_t arrows_ = 0;
  JsonWriter json_;
};

}  // namespace

Answer slice(const ServedTrace& trace, const Request& request) {
  const std::optional<SliceRef> slice = parse_ref(trace.model(), request.path[4]);
  if (!slice) return refusal(404, "no such slice; h12 is row 12 of host_slices, d7 row 7 of device_slices");
  return SliceWriter(trace, *slice).write();
}

}  // namespace firelane::serve

#include "bind/trace/torch_events.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/memory/memory.h"
#include "analyze/ops/flops.h"
#include "analyze/ops/function_events.h"
#include "analyze/ops/op_inputs.h"
#include "analyze/ops/ops.h"
#include "analyze/ops/ops_groups.h"
#include "analyze/ops/ops_stacks.h"
#include "export/chrome_kineto.h"
#include "model/host_role.h"

namespace nb = nanobind;

namespace firelane::bind_trace {

namespace {

nb::dict fields_of(const analyze::OpsRow& row) {
  nb::dict out;
  out["key"] = row.name;
  out["on_device"] = row.on_device;
  out["is_user_annotation"] = row.is_user_annotation;
  out["is_async"] = row.is_async;
  out["is_top_level"] = row.is_top_level;
  out["count"] = row.count;
  out["self_cpu_time_total_ns"] = row.self_cpu_time_total_ns;
  out["cpu_time_total_ns"] = row.cpu_time_total_ns;
  out["self_device_time_total_ns"] = row.self_device_time_total_ns;
  out["device_time_total_ns"] = row.device_time_total_ns;
  out["cpu_memory_usage"] = row.cpu_memory_usage_bytes;
  out["self_cpu_memory_usage"] = row.self_cpu_memory_usage_bytes;
  out["device_memory_usage"] = row.device_memory_usage_bytes;
  out["self_device_memory_usage"] = row.self_device_memory_usage_bytes;
  out["flops"] = row.flops;
  out["overload_name"] = row.overload;
  out["input_shapes"] = row.input_shapes;
  out["stack"] = row.stack;
  return out;
}

nb::list key_averages(const Trace& trace, bool group_by_input_shape, uint32_t group_by_stack_n,
                      bool group_by_overload_name, bool python_functions) {
  analyze::OpsResult result;
  {
    const nb::gil_scoped_release release_gil;
    result = trace.studied->get<analyze::ops>({.group_by_input_shape = group_by_input_shape,
                                               .group_by_overload = group_by_overload_name,
                                               .python_functions = python_functions,
                                               .group_by_stack = group_by_stack_n});
  }
  nb::list rows;
  for (const analyze::OpsRow& row : result.rows) rows.append(fields_of(row));
  return rows;
}

// Events by index; fields are put together when they are asked for.
class Events {
 public:
  Events(std::shared_ptr<const Model> model, analyze::PythonFunctions python)
      : model_(std::move(model)),
        events_(analyze::function_events(*model_, python)),
        flops_(*model_),
        stacks_(*model_, UINT32_MAX) {}

  size_t size() const { return events_.size(); }

  std::optional<uint32_t> parent(uint32_t event) const {
    const uint32_t parent = events_.parent[checked(event)];
    return parent == kNoRow ? std::nullopt : std::optional(parent);
  }

  std::vector<uint32_t> children(uint32_t event) const {
    checked(event);
    return {events_.child.begin() + events_.child_begin[event], events_.child.begin() + events_.child_begin[event + 1]};
  }

  bool is_on_device(uint32_t event) const { return events_.side[checked(event)] == analyze::EventSide::kDevice; }

  // Start and end in ns.
  std::pair<int64_t, int64_t> times(uint32_t event) const {
    const Row row = events_.row[checked(event)];
    switch (events_.side[event]) {
      case analyze::EventSide::kHost: return {model_->host_slices.start_ns[row], model_->host_slices.end_ns(row)};
      case analyze::EventSide::kDevice: return {model_->device_slices.start_ns[row], model_->device_slices.end_ns(row)};
      case analyze::EventSide::kMemory: break;
    }
    return {model_->memory_events.time_ns[row], model_->memory_events.time_ns[row]};
  }

  // What Kineto writes into the event's args: a JSON object without its braces. "" for what has none.
  std::string metadata_json(uint32_t event) {
    if (events_.side[checked(event)] != analyze::EventSide::kHost) return "";
    return exporter::host_metadata_json(*model_, kineto(), events_.row[event]);
  }

  nb::dict fields(uint32_t event) {
    switch (events_.side[checked(event)]) {
      case analyze::EventSide::kHost: return host_fields(event);
      case analyze::EventSide::kDevice: return device_fields(event);
      case analyze::EventSide::kMemory: return memory_fields(event);
    }
    return {};
  }

 private:
  const exporter::KinetoExtras& kineto() {
    if (!kineto_) kineto_.emplace(*model_);
    return *kineto_;
  }

  uint32_t checked(uint32_t event) const {
    if (event >= events_.size()) throw nb::index_error("event out of range");
    return event;
  }

  nb::dict common(uint32_t event, std::string_view name, LaneId lane) const {
    const auto at = static_cast<size_t>(lane);
    const auto number = [](const TraceId& id) { return id.number == kNoNumber ? int64_t{0} : id.number; };
    nb::dict out;
    out["name"] = role_of(name) == HostRole::kStep ? std::string_view("ProfilerStep*") : name;
    out["trace_name"] = name;
    out["thread"] = number(model_->lanes.tid[at]);
    out["device_index"] = number(model_->lanes.pid[at]);
    out["device_resource_id"] = number(model_->lanes.tid[at]);
    out["is_async"] = model_->lanes.kind[at] == LaneKind::kAsync;
    out["cpu_memory_usage"] = events_.memory[event].cpu_bytes;
    out["device_memory_usage"] = events_.memory[event].device_bytes;
    out["is_user_annotation"] = false;
    out["is_python_function"] = false;
    out["python_id"] = -1;
    out["python_parent_id"] = -1;
    out["python_module_id"] = -1;
    out["id"] = 0;
    out["fwd_thread"] = 0;
    out["sequence_nr"] = -1;
    out["scope"] = 0;
    out["flops"] = 0;
    out["overload_name"] = "";
    out["input_shapes"] = "";
    out["concrete_inputs"] = "";
    out["kwinputs"] = "";
    out["structured_input_shapes"] = "";
    out["structured_input_strides"] = "";
    out["input_dtypes"] = "";
    out["activity_type"] = nb::none();
    out["linked_correlation_id"] = 0;
    out["stack"] = nb::list();
    out["kernels"] = nb::list();
    return out;
  }

  nb::dict host_fields(uint32_t event) {
    const HostSlices& host = model_->host_slices;
    const Row row = events_.row[event];
    nb::dict out = common(event, model_->text(host.name[row]), host.lane[row]);
    out["stack"] = stacks_.frames(stacks_.of_host(row, events_.backward[event]));
    out["kernels"] = kernels_of(row);
    out["activity_type"] = exporter::host_activity_type(*model_, row);
    if (analyze::is_async_slice(*model_, row)) out["is_async"] = true;
    if (host.kind[row] == HostKind::kPython) {
      const exporter::KinetoExtras::PythonIds ids = kineto().python_ids(row);
      out["is_python_function"] = true;
      out["stack"] = nb::list();  // its parents
      out["python_id"] = ids.own;
      out["python_parent_id"] = ids.parent;
      out["python_module_id"] = ids.module;
    }
    const bool is_annotation = host.kind[row] == HostKind::kAnnotation;
    if (host.kind[row] != HostKind::kOp && !is_annotation) return out;
    out["is_user_annotation"] = is_annotation;
    out["scope"] = is_annotation ? 7 : events_.backward[event] == row ? 1 : 0;  // at::RecordScope
    out["flops"] = flops_.of(row).torch_flops;
    const Row detail = model_->op_detail(row);
    if (detail == kNoRow) return out;
    const OpDetails& ops = model_->op_details;
    const auto or_else = [](int64_t value, int64_t other) { return value == kNoNumber ? other : value; };
    out["id"] = or_else(ops.external_id[detail], 0);
    out["sequence_nr"] = or_else(ops.sequence_number[detail], -1);
    out["fwd_thread"] = or_else(ops.forward_thread[detail], 0);
    if (ops.input_dims[detail] != kNoString)
      out["input_shapes"] = analyze::dims_text(analyze::parse_input_dims(model_->text(ops.input_dims[detail])));
    out["concrete_inputs"] = model_->text(ops.concrete_inputs[detail]);
    out["overload_name"] = model_->text(ops.overload[detail]);
    out["kwinputs"] = model_->text(ops.more_args[detail]);
    out["structured_input_shapes"] = model_->text(ops.input_dims[detail]);
    out["structured_input_strides"] = model_->text(ops.input_strides[detail]);
    out["input_dtypes"] = model_->text(ops.input_types[detail]);
    return out;
  }

  nb::dict device_fields(uint32_t event) {
    const DeviceSlices& device = model_->device_slices;
    const Row row = events_.row[event];
    nb::dict out = common(event, model_->text(device.name[row]), device.lane[row]);
    out["is_user_annotation"] = device.kind[row] == DeviceKind::kAnnotation;
    out["activity_type"] = exporter::device_activity_type(*model_, row);
    const Row op_detail = device.op[row] == kNoRow ? kNoRow : model_->op_detail(device.op[row]);
    if (op_detail != kNoRow) out["linked_correlation_id"] = model_->op_details.external_id[op_detail];
    out["device_index"] = device.device[row];
    out["device_resource_id"] = device.stream[row];
    out["stack"] = stacks_.frames(stacks_.of_device(row));
    return out;
  }

  nb::dict memory_fields(uint32_t event) {
    const MemoryEvents& memory = model_->memory_events;
    const Row row = events_.row[event];
    const bool is_out_of_memory = memory.kind[row] == MemoryEventKind::kOutOfMemory;
    nb::dict out = common(event, is_out_of_memory ? "[OutOfMemory]" : "[memory]", memory.lane[row]);
    out["trace_name"] = nb::none();  // torch: not for a Chrome trace
    return out;
  }

  // (name, device, ns) of the work that the op launched itself.
  nb::list kernels_of(Row op) {
    if (!kernels_sorted_) sort_kernels();
    const DeviceSlices& device = model_->device_slices;
    const auto before = [&](Row kernel, Row wanted) { return device.op[kernel] < wanted; };
    nb::list out;
    for (auto at = std::lower_bound(kernels_.begin(), kernels_.end(), op, before);
         at != kernels_.end() && device.op[*at] == op; ++at)
      out.append(nb::make_tuple(model_->text(device.name[*at]), device.device[*at], device.duration_ns[*at]));
    return out;
  }

  void sort_kernels() {
    const DeviceSlices& device = model_->device_slices;
    for (uint32_t event = 0; event < events_.size(); ++event)
      if (events_.side[event] == analyze::EventSide::kDevice &&
          device.kind[events_.row[event]] != DeviceKind::kAnnotation && device.op[events_.row[event]] != kNoRow)
        kernels_.push_back(events_.row[event]);
    std::stable_sort(kernels_.begin(), kernels_.end(), [&](Row a, Row b) { return device.op[a] < device.op[b]; });
    kernels_sorted_ = true;
  }

  std::shared_ptr<const Model> model_;
  analyze::FunctionEvents events_;
  analyze::FlopsTable flops_;
  analyze::OpsStacks stacks_;
  std::vector<Row> kernels_;  // device slices, by the op that launched them
  bool kernels_sorted_ = false;
  std::optional<exporter::KinetoExtras> kineto_;
};

Events function_events_of(const Trace& trace, bool python_functions) {
  using analyze::PythonFunctions;
  const nb::gil_scoped_release release_gil;
  return Events(trace.model, python_functions ? PythonFunctions::kIncluded : PythonFunctions::kLeftOut);
}

// What each memory event's block is for, in the words of docs/analyses.md.
std::vector<std::string_view> memory_categories(const Trace& trace) {
  const nb::gil_scoped_release release_gil;
  std::vector<std::string_view> names;
  for (const analyze::MemoryCategory category : trace.studied->get<analyze::memory_report>().category)
    names.push_back(analyze::name_of(category));
  return names;
}

}  // namespace

void bind_torch_events(nb::module_& module, nb::class_<Trace>& trace) {
  nb::class_<Events>(module, "_FunctionEvents", nb::is_final())
      .def("__len__", &Events::size)
      .def("parent", &Events::parent, nb::arg("event"))
      .def("children", &Events::children, nb::arg("event"))
      .def("is_on_device", &Events::is_on_device, nb::arg("event"))
      .def("times", &Events::times, nb::arg("event"))
      .def("metadata_json", &Events::metadata_json, nb::arg("event"))
      .def("fields", &Events::fields, nb::arg("event"),
           nb::sig("def fields(self, event: int) -> dict[str, typing.Any]"));
  trace.def("_function_events", &function_events_of, nb::arg("python_functions") = false);
  trace.def("_memory_categories", &memory_categories);
  trace.def_prop_ro(
      "_start_unix_ns", [](const Trace& t) { return t.model->info.start_ns + t.model->info.base_time_ns; },
      nb::sig("def _start_unix_ns(self) -> int"));
  trace.def("_key_averages", &key_averages, nb::arg("group_by_input_shape") = false, nb::arg("group_by_stack_n") = 0,
            nb::arg("group_by_overload_name") = false, nb::arg("python_functions") = false,
            nb::sig("def _key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, "
                    "group_by_overload_name: bool = False, python_functions: bool = False) "
                    "-> list[dict[str, typing.Any]]"));
}

}  // namespace firelane::bind_trace

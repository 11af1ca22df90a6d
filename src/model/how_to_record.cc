#include "model/how_to_record.h"

namespace firelane {

namespace {

struct Advice {
  Origin origin;
  RecordOption option;
  std::string_view words;
};

constexpr std::string_view kXPlaneHasNone = "XPlane files do not hold them";
constexpr Advice kAdvice[] = {
    {Origin::kNsight, RecordOption::kShapes, "record with nsys profile --pytorch=autograd-shapes-nvtx"},
    {Origin::kNsight, RecordOption::kFlops, "record with nsys profile --pytorch=autograd-shapes-nvtx"},
    {Origin::kNsight, RecordOption::kCudaSync, "record with nsys profile --cuda-event-trace=true"},
    {Origin::kNsight, RecordOption::kMetrics, "record with nsys profile --gpu-metrics-devices=all"},
    {Origin::kNsight, RecordOption::kMemory, "Nsight Systems does not record it; firelane record --memory does"},
    {Origin::kNsight, RecordOption::kStacks, "Nsight Systems does not record it; firelane record --stacks does"},
    {Origin::kNsight, RecordOption::kModules, "Nsight Systems does not record it; firelane record --modules does"},
    {Origin::kXPlane, RecordOption::kShapes, kXPlaneHasNone},
    {Origin::kXPlane, RecordOption::kFlops, "XPlane files hold those of TPUs only"},
    {Origin::kXPlane, RecordOption::kModules, kXPlaneHasNone},
    {Origin::kXPlane, RecordOption::kCudaSync, kXPlaneHasNone},
    {Origin::kXPlane, RecordOption::kMetrics, kXPlaneHasNone},
    {Origin::kXPlane, RecordOption::kMemory, "record with host_tracer_level = 2 (jax.profiler.ProfileOptions)"},
    {Origin::kXPlane, RecordOption::kStacks, "record with python_tracer_level = 1 (jax.profiler.ProfileOptions)"},
    {Origin::kRocprof, RecordOption::kShapes,
     "rocprofv3 does not record it; torch.profiler on ROCm does, with record_shapes=True"},
    {Origin::kRocprof, RecordOption::kFlops,
     "rocprofv3 does not record it; torch.profiler on ROCm does, with record_shapes=True"},
    {Origin::kRocprof, RecordOption::kMemory,
     "rocprofv3 does not record it; torch.profiler on ROCm does, with profile_memory=True"},
    {Origin::kRocprof, RecordOption::kStacks,
     "rocprofv3 does not record it; torch.profiler on ROCm does, with with_stack=True"},
    {Origin::kRocprof, RecordOption::kModules,
     "rocprofv3 does not record it; torch.profiler on ROCm does, with with_modules=True"},
    {Origin::kRocprof, RecordOption::kCudaSync, "rocprofv3 does not record it"},
    {Origin::kAscend, RecordOption::kShapes, "record with torch_npu.profiler.profile(record_shapes=True)"},
    {Origin::kAscend, RecordOption::kFlops, "record with torch_npu.profiler.profile(record_shapes=True)"},
    {Origin::kAscend, RecordOption::kStacks, "record with torch_npu.profiler.profile(with_stack=True)"},
    {Origin::kAscend, RecordOption::kModules, "record with torch_npu.profiler.profile(with_modules=True)"},
    {Origin::kAscend, RecordOption::kMemory, "trace_view.json does not hold it; memory_record.csv beside it does"},
    {Origin::kAscend, RecordOption::kCudaSync, "trace_view.json does not hold it"},
};

struct OwnRemedy {
  Origin origin;
  Stat stat;
  std::string_view words;
};
constexpr OwnRemedy kOwnRemedies[] = {
    {Origin::kXPlane, Stat::kDeviceSliceWithoutLaunch,
     "normal on TPUs: the host starts whole programs, not single ops"},
    {Origin::kXPlane, Stat::kDeviceSliceWithoutOp, "normal for ops of XLA that the host starts as one program"},
    {Origin::kXPlane, Stat::kOverlappingDeviceSlices, "normal for asynchronous ops"},
    {Origin::kRocprof, Stat::kDeviceSliceWithoutLaunch, "record with rocprofv3 --hip-trace, or --sys-trace"},
    {Origin::kRocprof, Stat::kDeviceSliceWithoutOp, "normal: rocprofv3 knows no operators"},
    {Origin::kRocprof, Stat::kOverlappingDeviceSlices, "normal where a queue runs several kernels at once"},
    {Origin::kNsight, Stat::kDeviceSliceWithoutOp,
     "normal for kernels outside of PyTorch's ranges; record with nsys profile --pytorch=autograd-nvtx"},
    {Origin::kNsight, Stat::kLaunchWithoutDeviceSlice, "normal at the edges of a recording"},
    {Origin::kNsight, Stat::kDeviceSliceWithoutLaunch, "normal at the edges of a recording"},
    {Origin::kAscend, Stat::kLaunchWithoutDeviceSlice, "normal at the edges of a recording"},
};

}  // namespace

bool records_as_torch(Origin origin) {
  return origin == Origin::kKineto || origin == Origin::kFirelane || origin == Origin::kOther;
}

std::string how_to_record(const TraceInfo& info, RecordOption option) {
  if (!records_as_torch(info.origin)) {
    for (const Advice& each : kAdvice) {
      if (each.origin == info.origin && each.option == option) return std::string(each.words);
    }
    return std::string(kNotGiven);
  }
  const bool is_cuda = info.accelerator == Accelerator::kCuda || info.accelerator == Accelerator::kUnknown;
  if (option == RecordOption::kCudaSync && !is_cuda) return "torch.profiler does not record it on this device";
  return "record with " + std::string(info.environment.flag(option));
}

std::string_view remedy_for(const TraceInfo& info, Stat stat) {
  for (const OwnRemedy& each : kOwnRemedies) {
    if (each.origin == info.origin && each.stat == stat) return each.words;
  }
  return info_of(stat).remedy;
}

}  // namespace firelane

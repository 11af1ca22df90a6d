#include "record/torch/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#if FIRELANE_CUPTI
#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include "base/words.h"
#include "record/cupti/activity.h"
#include "record/cupti/device_properties.h"
#include "record/cupti/metrics.h"
#include "record/cupti/nvml.h"
#endif
#if FIRELANE_TORCH_CUDA
#include "record/torch/cuda_memory.h"
#include "record/torch/graph_capture.h"
#endif

namespace firelane::torch_hooks {
namespace {

class NoDevice final : public DeviceRecording {
  void open_window() noexcept override {}
  void pause() noexcept override {}
  void resume() noexcept override {}
  void begin_counts(bool) noexcept override {}
  void stop() noexcept override {}
};

#if FIRELANE_CUPTI
class Cuda final : public DeviceRecording, public record::DeviceSource {
 public:
  Cuda(record::Session& session, const cupti::CuptiApi& api, std::unique_ptr<cupti::DeviceActivity> activity)
      : session_(session), api_(api), activity_(std::move(activity)) {}

  void start_rest() {
    std::string reason;
    if (session_.options().metrics) start_metrics();
    if (const std::optional<cupti::NvmlApi> nvml = cupti::load_nvml(reason)) {
      power_.emplace(*nvml, cupti::NvmlSampler::Options{.bus_ids = cupti::used_device_bus_ids});
    } else {
      session_.add_loss(reason, 0);
    }
  }

  void drain(record::DeviceSink& sink) override {
    activity_->drain(sink);
    if (metrics_ != nullptr) metrics_->drain(sink);
  }

  void open_window() noexcept override {
    if (metrics_ != nullptr) metrics_->resume();  // may wait, and so comes first
    activity_->open_window();
  }
  void pause() noexcept override {
    if (metrics_ != nullptr) metrics_->pause();
    activity_->pause();
  }
  void resume() noexcept override {
    if (metrics_ != nullptr) metrics_->resume();
    activity_->resume();
  }
  void begin_counts(bool with_memory) noexcept override {
    if (power_) power_->wake();
    if (!session_.options().memory || !with_memory) return;
#if FIRELANE_TORCH_CUDA
    enable_cuda_memory_hook(session_);
#else
    session_.add_loss("GPU memory: this firelane was built for a torch without CUDA; rebuild it with the torch you use",
                      0);
#endif
  }

  void stop() noexcept override {
    if (std::exchange(stopped_, true)) return;
    activity_->close_window();
    wait_for_queued_work();
    if (metrics_ != nullptr) metrics_->stop();
    activity_->stop();
    power_.reset();
#if FIRELANE_TORCH_CUDA
    disable_cuda_memory_hook(session_);
#endif
    try {
      const at::CUDAHooksInterface& cuda = at::detail::getCUDAHooks();
      if (cuda.hasCUDA()) session_.add_metadata("cuda_runtime_version", std::to_string(cuda.versionCUDART()));
      if (const std::string json = cupti::device_properties_json(); !json.empty())
        session_.add_metadata("deviceProperties", json);
    } catch (const std::exception&) {
    }
  }

 private:
  void start_metrics() {
    const record::RecordOptions& options = session_.options();
    const std::vector<std::string_view> names = names_in(options.metric_names);
    metrics_ = cupti::start_metrics(api_, session_,
                                    {.names = {names.begin(), names.end()},
                                     .interval_ns = options.metric_interval_ns,
                                     .bus_ids = cupti::used_device_bus_ids});
    if (metrics_ != nullptr) session_.set_device_source(this);
  }

  void wait_for_queued_work() noexcept {
#if FIRELANE_TORCH_CUDA
    if (is_capturing_graph()) {
      session_.add_loss(
          "GPU: a CUDA graph was being captured when recording stopped; work that was still queued is missing", 0);
      return;
    }
#endif
    try {
      const at::CUDAHooksInterface& cuda = at::detail::getCUDAHooks();
      const int count = cuda.hasCUDA() ? cuda.getNumGPUs() : 0;
      for (int device = 0; device < count; ++device) {
        const auto index = static_cast<c10::DeviceIndex>(device);
        if (cuda.hasPrimaryContext(index)) cuda.deviceSynchronize(index);
      }
    } catch (const std::exception&) {  // the device has failed: take what is there
    }
  }

  record::Session& session_;
  const cupti::CuptiApi api_;
  // Outlives the activity, whose end is the end of drain().
  std::unique_ptr<cupti::MetricsSource> metrics_;
  std::unique_ptr<cupti::DeviceActivity> activity_;
  std::optional<cupti::NvmlSampler> power_;
  bool stopped_ = false;
};

std::unique_ptr<DeviceRecording> start_cuda(record::Session& session, std::string& reason) {
  if (torch::profiler::impl::profilerEnabled()) {
    reason = "GPU: torch.profiler is recording; stop it first";
    return nullptr;
  }
  const std::optional<cupti::CuptiApi> api = cupti::load_cupti(reason);
  if (!api) return nullptr;
  auto activity = cupti::DeviceActivity::start(*api, session, reason);
  if (activity == nullptr) return nullptr;
  auto cuda = std::make_unique<Cuda>(session, *api, std::move(activity));
  cuda->start_rest();
  return cuda;
}
#else
std::unique_ptr<DeviceRecording> start_cuda(record::Session&, std::string& reason) {
  reason =
      "GPU: this recorder was built without CUPTI's headers; build one with them, for the torch that is installed: "
      "firelane build-recorder";
  return nullptr;
}
#endif

}  // namespace

bool has_gpu(const std::filesystem::path& devices) noexcept {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && (*visible == '\0' || *visible == '-')) return false;
  if (void* cuda = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {  // the program has started CUDA
    ::dlclose(cuda);
    return true;
  }
  std::error_code error;
  for (const char* driver : {"nvidiactl", "nvhost-gpu", "nvgpu", "dxg"}) {  // Linux, two kinds of Jetson, WSL
    if (std::filesystem::exists(devices / driver, error)) return true;
  }
  return false;
}

std::unique_ptr<DeviceRecording> DeviceRecording::start(record::Session& session) noexcept {
  try {
    std::string reason;
    if (auto cuda = start_cuda(session, reason)) return cuda;
    session.add_loss(reason, 0);
  } catch (const std::exception& error) {
    session.add_loss(std::string("GPU: ") + error.what(), 0);
  }
  return std::make_unique<NoDevice>();
}

}  // namespace firelane::torch_hooks

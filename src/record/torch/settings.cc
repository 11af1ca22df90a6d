#include "record/torch/settings.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <cstdint>
#include <exception>

#include "base/json_writer.h"

namespace firelane::torch_hooks {

namespace {

std::string& torch_version() {
  static std::string version = TORCH_VERSION;
  return version;
}

}  // namespace

void set_torch_version(std::string_view version) { torch_version() = version; }

std::string settings_json() {
  JsonWriter json;
  json.begin_object();
  json.field("version", torch_version());
  json.field("threads", static_cast<int64_t>(at::get_num_threads()));
  json.field("interop_threads", static_cast<int64_t>(at::get_num_interop_threads()));
  const at::Context& context = at::globalContext();
  json.field("deterministic_algorithms", context.deterministicAlgorithms());
  if (at::Context::hasCUDART()) {
    json.field("cudnn_benchmark", context.benchmarkCuDNN());
    json.field("cudnn_deterministic", context.deterministicCuDNN());
    try {  // torch refuses to say when a program mixes its old and new settings
      json.field("matmul_tf32", context.allowTF32CuBLAS());
    } catch (const std::exception&) {
    }
  }
  return json.end_object().take();
}

}  // namespace firelane::torch_hooks

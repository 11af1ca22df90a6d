// How the program set torch up: what advice must know before it recommends threads, cuDNN's benchmark or TF32.
#pragma once

#include <string>
#include <string_view>

namespace firelane::torch_hooks {

// {"version":"2.11.0","threads":8,"interop_threads":4,"cudnn_benchmark":false,"deterministic_algorithms":false,
//  "matmul_tf32":false}. Settings of the GPU only where torch was built for one.
std::string settings_json();
// The version to name; unless it is called, that of the headers which this was compiled with.
void set_torch_version(std::string_view version);

}  // namespace firelane::torch_hooks

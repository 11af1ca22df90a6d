// How the program set torch up: what advice must know before it recommends threads, cuDNN's benchmark or TF32.
#pragma once

#include <string>

namespace firelane::torch_hooks {

// {"version":"2.11.0","threads":8,"interop_threads":4,"cudnn_benchmark":false,"deterministic_algorithms":false,
//  "matmul_tf32":false}. Settings of the GPU only where torch was built for one.
std::string settings_json();

}  // namespace firelane::torch_hooks

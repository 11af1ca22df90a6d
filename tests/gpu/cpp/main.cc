// Two recorded steps of a matrix product and a sine on the GPU, into the file named on the command line. The GPU is
// recorded without being asked for.
#include <ATen/ATen.h>
#include <firelane/profiler.h>

#include <cstdio>
#include <string>

int main(int, char** argv) {
  const at::Tensor x = at::rand({256, 256}, at::kCUDA);
  at::mm(x, x).sin().sum().item<float>();  // loads the kernels

  firelane::ProfilerOptions options;
  options.memory = true;
  options.schedule = firelane::schedule({.wait = 4, .warmup = 1, .active = 2, .repeat = 1});
  std::string error = "no trace was ready";
  options.on_trace_ready = [&](firelane::Profiler& p) { error = p.save(argv[1]); };
  firelane::Profiler profiler(std::move(options));
  for (int i = 0; i < 8; ++i) {
    at::mm(x, x).sin().sum().item<float>();
    profiler.step();
  }
  profiler.stop();
  for (const std::string& loss : profiler.losses()) std::printf("%s\n", loss.c_str());
  if (!error.empty()) std::fprintf(stderr, "%s: %s\n", argv[1], error.c_str());
  return error.empty() ? 0 : 1;
}

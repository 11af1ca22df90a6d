// A training loop in C++ with libtorch, recorded by Firelane: two steps are only timed, one warms up, three are
// recorded into train.lane (or the file named on the command line). Then: firelane info train.lane
#include <ATen/ATen.h>
#include <firelane/profiler.h>

#include <cstdio>
#include <string>
#include <utility>

int main(int argc, char** argv) {
  const std::string file = argc > 1 ? argv[1] : "train.lane";

  firelane::ProfilerOptions options;
  options.shapes = true;
  options.memory = true;
  options.schedule = firelane::schedule({.wait = 2, .warmup = 1, .active = 3, .repeat = 1});
  options.on_trace_ready = [&](firelane::Profiler& profiler) {
    const std::string error = profiler.save(file);
    if (!error.empty()) std::fprintf(stderr, "%s\n", error.c_str());
  };
  firelane::Profiler profiler(std::move(options));

  at::Tensor weight = at::randn({64, 64});
  for (int step = 0; step < 8; ++step) {
    at::Tensor batch;
    {
      firelane::ProfilerScope scope("load batch");
      batch = at::randn({32, 64});
    }
    const at::Tensor error = at::relu(at::mm(batch, weight)) - batch;
    const at::Tensor gradient = at::mm(batch.t(), error);
    weight.sub_(gradient, 1e-4);
    profiler.step();
  }
  profiler.stop();

  for (const std::string& loss : profiler.losses()) std::fprintf(stderr, "not recorded: %s\n", loss.c_str());
  std::printf("%s\n", file.c_str());
  return 0;
}

// A libtorch program that records itself: one epoch of a small network into the file named on the command line.
#include <firelane/profiler.h>
#include <torch/torch.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  const std::string file = argc > 1 ? argv[1] : "my_program.lane";
  torch::nn::Sequential net(torch::nn::Linear(16, 32), torch::nn::ReLU(), torch::nn::Linear(32, 1));
  torch::optim::SGD optimizer(net->parameters(), 0.01);

  firelane::ProfilerOptions options;
  options.shapes = true;
  firelane::Profiler profiler(options);
  for (int i = 0; i < 3; ++i) {
    torch::Tensor batch;
    {
      firelane::ProfilerScope scope("load batch");
      batch = torch::randn({8, 16});
    }
    optimizer.zero_grad();
    net->forward(batch).pow(2).mean().backward();
    optimizer.step();
    profiler.step();
  }
  profiler.stop();

  const std::string error = profiler.save(file);
  if (!error.empty()) std::fprintf(stderr, "%s: %s\n", file.c_str(), error.c_str());
  return error.empty() ? 0 : 1;
}

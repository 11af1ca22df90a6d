#include "record/torch/cost.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <memory>

#include "record/core/session.h"
#include "record/torch/cpu_memory.h"

namespace firelane {
namespace {

constexpr int kRounds = 9;
constexpr int kBatch = 128;

class NoSink final : public ByteSink {
 public:
  std::string write(std::string_view) override { return {}; }
  std::string name() const override { return "nowhere"; }
};

// Between two events a program runs other code: what the hooks use has left the nearest cache when they are needed
// again.
void run_other_code() {
  constexpr size_t kLines = 768;  // 48 KiB
  static std::array<volatile uint64_t, kLines * 8> lines{};
  for (size_t i = 0; i < kLines; ++i) lines[i * 8] = lines[i * 8] + 1;
}

template <typename Work>
double batch_ns(Work&& work) {
  const uint64_t start = now_ticks();
  for (int i = 0; i < kBatch; ++i) {
    run_other_code();
    work();
  }
  return static_cast<double>(now_ticks() - start) * 1e9 / ticks_per_second() / kBatch;
}

// The median over rounds of (with the hook) - (without), each measured one after the other. A hook may begin with an
// empty table: its pages are touched first, as a program's later events find them.
template <typename Work, typename On, typename Off>
double added_ns(Work&& work, On&& on, Off&& off) {
  std::array<double, kRounds> added{};
  batch_ns(work);
  for (double& ns : added) {
    const double without = batch_ns(work);
    on();
    for (int i = 0; i < 4 * kBatch; ++i) work();
    const double with = batch_ns(work);
    off();
    ns = with - without;
  }
  std::nth_element(added.begin(), added.begin() + kRounds / 2, added.end());
  return std::max(0.0, added[kRounds / 2]);
}

const char* op_kind(OpDetail detail) { return detail == OpDetail::kPlain ? "op" : "op+inputs"; }

}  // namespace

std::map<std::string, double>& known_costs() {
  static std::map<std::string, double> costs;
  return costs;
}

const std::map<std::string, double>& measure_costs(const CostRequest& request) {
  std::map<std::string, double>& costs = known_costs();
  const bool op = !costs.contains(op_kind(request.detail));
  const bool memory = request.memory && !costs.contains("memory");
  bool more = false;
  for (const auto& [kind, measure] : request.more) more = more || !costs.contains(kind);
  if (!op && !memory && !more) return costs;
  RecordOptions options;
  options.make_sink = [] { return std::make_unique<NoSink>(); };
  auto session = Session::start(options);
  if (!session.ok()) return costs;
  if (op) {
    const at::RecordFunctionGuard observed(true);
    const c10::NoGradGuard no_grad;
    at::Tensor x = at::zeros({1});
    costs[op_kind(request.detail)] =
        added_ns([&] { x.add_(x); }, [&] { enable_op_hook(request.detail); }, [] { disable_op_hook(); });
  }
  if (memory) {
    const char* reason = nullptr;
    // An allocation and its free are two events.
    costs["memory"] = added_ns([] { c10::GetCPUAllocator()->allocate(256); }, [&] { enable_cpu_memory_hook(reason); },
                               [] { disable_cpu_memory_hook(); }) /
                      2;
  }
  for (const auto& [kind, measure] : request.more) {
    if (!costs.contains(kind)) costs[kind] = measure();
  }
  session.value()->stop();
  return costs;
}

}  // namespace firelane

#include "record/torch/cost.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <memory>
#include <system_error>
#include <thread>

#include "record/core/session.h"
#include "record/torch/cpu_memory.h"

namespace firelane::torch_hooks {
namespace {

constexpr int kRounds = 9;
constexpr int kBatch = 128;

class NoSink final : public format::ByteSink {
 public:
  std::string write(std::string_view) override { return {}; }
  std::string name() const override { return "nowhere"; }
};

template <typename Work>
double batch_ns(Work&& work) {
  const uint64_t start = now_ticks();
  for (int i = 0; i < kBatch; ++i) work();
  return static_cast<double>(now_ticks() - start) * 1e9 / ticks_per_second() / kBatch;
}

// The median over rounds of (with the hook) - (without), each measured one after the other.
template <typename Work, typename On, typename Off>
double added_ns(Work&& work, On&& on, Off&& off) {
  std::array<double, kRounds> added{};
  batch_ns(work);
  for (double& ns : added) {
    const double without = batch_ns(work);
    on();
    work();
    const double with = batch_ns(work);
    off();
    ns = with - without;
  }
  std::nth_element(added.begin(), added.begin() + kRounds / 2, added.end());
  return std::max(0.0, added[kRounds / 2]);
}

template <typename Work>
double median_ns(Work&& work) {
  std::array<double, kRounds> rounds{};
  for (double& ns : rounds) ns = batch_ns(work);
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

// The same for a hook that begins with an empty table: its pages are touched before it is measured, as a program's
// later events find them.
template <typename Work, typename On, typename Off>
double added_warm_ns(Work&& work, On&& on, Off&& off) {
  const double without = median_ns(work);
  on();
  median_ns(work);
  median_ns(work);
  const double with = median_ns(work);
  off();
  return std::max(0.0, with - without);
}

const char* op_kind(OpDetail detail) { return detail == OpDetail::kPlain ? "op" : "op+inputs"; }

double op_ns(OpDetail detail) {
  const at::RecordFunctionGuard observed(true);
  const c10::NoGradGuard no_grad;
  at::Tensor x = at::zeros({1});
  return added_ns([&] { x.add_(x); }, [&] { enable_op_hook(detail); }, [] { disable_op_hook(); });
}

double memory_ns() {
  const char* reason = nullptr;
  // An allocation and its free are two events.
  return added_warm_ns([] { c10::GetCPUAllocator()->allocate(256); }, [&] { enable_cpu_memory_hook(reason); },
                       [] { disable_cpu_memory_hook(); }) /
         2;
}

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
  record::RecordOptions options;
  options.make_sink = [] { return std::make_unique<NoSink>(); };
  auto session = record::Session::start(options);
  if (!session.ok()) return costs;
  // Another profiler's callbacks belong to the caller's thread, and would see thousands of ops that the program has
  // not.
  const auto measure_apart = [&]() noexcept {
    try {
      if (op) costs[op_kind(request.detail)] = op_ns(request.detail);
      if (memory) costs["memory"] = memory_ns();
    } catch (...) {  // as below: what they cost stays unknown
    }
  };
  try {
    std::thread(measure_apart).join();
  } catch (const std::system_error&) {  // the process may have no more threads
  }
  for (const auto& [kind, measure] : request.more) {
    if (!costs.contains(kind)) costs[kind] = measure();
  }
  session.value()->stop();
  return costs;
}

}  // namespace firelane::torch_hooks

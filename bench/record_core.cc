// ns per event on the recorder's hot path, below the hooks, with a live session whose drain encodes and compresses
// (the bytes are then thrown away). `dropped` must be 0: a benchmark that outruns the drain measures drops.
//
//   cmake --build build/release --target bench_record_core && build/release/bench/bench_record_core
#include <benchmark/benchmark.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "record/core/session.h"
#include "record/core/thread_buffer.h"

namespace firelane::record {
namespace {

using format::Attribute;
using format::Scope;
using format::ScopeGroup;

class NullSink final : public format::ByteSink {
 public:
  std::string write(std::string_view) override { return {}; }
  std::string name() const override { return "nowhere"; }
};

// One session per benchmark; counts what was dropped.
class Recording {
 public:
  explicit Recording(benchmark::State& state) : state_(state) {
    auto session = Session::start({.make_sink = [] { return std::make_unique<NullSink>(); }});
    if (session.ok()) {
      session_ = std::move(session).value();
    } else {
      state.SkipWithError(session.error().message.c_str());
    }
  }
  ~Recording() {
    if (session_ == nullptr) return;
    session_->stop();
    const SessionStatus status = session_->status();
    state_.counters["dropped"] = static_cast<double>(status.dropped_count);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  benchmark::State& state_;
  std::unique_ptr<Session> session_;
};

const std::vector<std::string>& names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> all;
    for (int i = 0; i < 64; ++i) all.push_back("aten::operator_number_" + std::to_string(i));
    return all;
  }();
  return kNames;
}

// The floor: what any recorder pays for two times.
void two_clock_readings(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(now_ticks());
    benchmark::DoNotOptimize(now_ticks());
  }
}
BENCHMARK(two_clock_readings);

void not_recording(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(recording_thread_for_begin());
}
BENCHMARK(not_recording);

void op(benchmark::State& state) {
  const Recording recording(state);
  size_t i = 0;
  for (auto _ : state) {
    if (ThreadBuffer* b = recording_thread_for_begin()) {
      b->begin(now_ticks(), b->stable_name(names()[i & 63].c_str()), Scope::kFunction, static_cast<int64_t>(i));
      ++i;
    }
    if (ThreadBuffer* b = recording_thread_for_end()) b->end(now_ticks(), ScopeGroup::kOp);
  }
}
BENCHMARK(op);

void op_with_inputs(benchmark::State& state) {
  const Recording recording(state);
  const int64_t sizes[2] = {16, 512};
  size_t i = 0;
  for (auto _ : state) {
    if (ThreadBuffer* b = recording_thread_for_begin()) {
      b->begin(now_ticks(), b->stable_name(names()[i & 63].c_str()), Scope::kFunction, static_cast<int64_t>(i));
      ++i;
      InputBlob blob;
      blob.tensor(6, sizes, sizes, 2);
      blob.tensor(6, sizes, sizes, 2);
      blob.scalar("1");
      b->attribute(Attribute::kInputs, b->inputs(blob));
    }
    if (ThreadBuffer* b = recording_thread_for_end()) b->end(now_ticks(), ScopeGroup::kOp);
  }
}
BENCHMARK(op_with_inputs);

void annotation_by_content(benchmark::State& state) {
  const Recording recording(state);
  size_t i = 0;
  for (auto _ : state) {
    if (ThreadBuffer* b = recording_thread_for_begin()) b->begin(now_ticks(), b->text(names()[i++ & 63]), Scope::kUser);
    if (ThreadBuffer* b = recording_thread_for_end()) b->end(now_ticks(), ScopeGroup::kOp);
  }
}
BENCHMARK(annotation_by_content);

void memory_event(benchmark::State& state) {
  const Recording recording(state);
  uint64_t address = 4096;
  for (auto _ : state) {
    if (ThreadBuffer* b = recording_thread()) b->memory(now_ticks(), {.address = address += 64, .bytes = 64});
  }
}
BENCHMARK(memory_event);

void start_and_stop(benchmark::State& state) {
  for (auto _ : state) {
    auto session = Session::start({.make_sink = [] { return std::make_unique<NullSink>(); }});
    if (session.ok()) session.value()->stop();
  }
}
BENCHMARK(start_and_stop);

}  // namespace
}  // namespace firelane::record

BENCHMARK_MAIN();

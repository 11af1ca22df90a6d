// Does one thing to one trace in a fresh process and prints what it took, as JSON; bench/load.py calls it.
//
//   bench_load firelane FILE [THREADS]   file -> ready model
//   bench_load analyses FILE             the same, then `ops` and `kernels` on the model
//   bench_load simdjson FILE             on-demand iteration over the content in memory, touching name, cat, ts, dur
//   bench_load inflate FILE.gz           ISA-L alone, a buffer at a time, output thrown away
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "analyze/device/kernels.h"
#include "analyze/ops/ops.h"
#include "import/load.h"
#include "raw_simdjson.h"
#include "read_file.h"
#include "stopwatch.h"

namespace {

using firelane::bench::fail;
using firelane::bench::Stopwatch;

// The most memory this process ever had, file pages that it mapped included.
double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void print(double seconds, uint64_t bytes, uint64_t events) {
  std::printf("{\"seconds\": %.6f, \"bytes\": %llu, \"events\": %llu, \"peak_mib\": %.1f}\n", seconds,
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(events), peak_mib());
}

firelane::Model load(const std::string& path, unsigned threads) {
  firelane::Result<firelane::Model> model = firelane::importer::load_trace(path, {.threads = threads});
  if (!model.ok()) fail(model.error().message);
  return std::move(model).value();
}

void run_firelane(const std::string& path, unsigned threads) {
  const Stopwatch watch;
  const firelane::Model model = load(path, threads);
  print(watch.seconds(), model.info.content_bytes, model.info.event_count);
}

void run_analyses(const std::string& path) {
  const firelane::Model model = load(path, 0);
  const Stopwatch ops_watch;
  const firelane::analyze::OpsResult ops = firelane::analyze::ops(model);
  const double ops_seconds = ops_watch.seconds();
  const Stopwatch kernels_watch;
  const firelane::analyze::KernelTable kernels = firelane::analyze::kernel_table(model);
  const double kernels_seconds = kernels_watch.seconds();
  std::printf("{\"ops_seconds\": %.6f, \"ops_rows\": %zu, \"kernels_seconds\": %.6f, \"kernels_rows\": %zu}\n",
              ops_seconds, ops.rows.size(), kernels_seconds, kernels.rows.size());
}

void run_simdjson(const std::string& path) {
  const std::string content = firelane::bench::read_content(path);
  const firelane::bench::Iteration done = firelane::bench::iterate_with_simdjson(content);
  print(done.seconds, content.size(), done.events);
}

void run_inflate(const std::string& path) {
  const std::string gzip = firelane::bench::read_file(path);
  const Stopwatch watch;
  uint64_t bytes = 0;
  firelane::bench::inflate(gzip, [&](std::string_view part) { bytes += part.size(); });
  print(watch.seconds(), bytes, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: bench_load firelane|analyses|simdjson|inflate FILE [THREADS]");
  const std::string_view what = argv[1];
  const std::string path = argv[2];
  if (what == "firelane") {
    run_firelane(path, argc > 3 ? static_cast<unsigned>(std::stoul(argv[3])) : 0);
  } else if (what == "analyses") {
    run_analyses(path);
  } else if (what == "simdjson") {
    run_simdjson(path);
  } else if (what == "inflate") {
    run_inflate(path);
  } else {
    fail("unknown: " + std::string(what));
  }
}

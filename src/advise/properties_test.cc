// What must hold for the findings of every trace: random ones, and the real ones of tests/data.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <random>

#include "advise/testing.h"
#include "analyze/memory/memory.h"
#include "analyze/modules/modules.h"
#include "analyze/testing.h"
#include "base/test_depth.h"
#include "import/load.h"

namespace firelane::advise {
namespace {

// No finding promises more than there is.
void expect_findings_within_a_step(const Judged& diagnosis, const std::string& which) {
  const int64_t step_ns = diagnosis.study.undone.step_ns;
  bool saves_time = false;
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_GE(finding.gain.low_ns, 0) << which << finding.id;
    EXPECT_LE(finding.gain.low_ns, finding.gain.high_ns) << which << finding.id;
    EXPECT_LE(finding.gain.high_ns, step_ns) << which << finding.id;
    EXPECT_GE(finding.share_of_step, 0) << which << finding.id;
    EXPECT_LE(finding.share_of_step, 1) << which << finding.id;
    EXPECT_FALSE(finding.title.empty() || finding.try_text.empty()) << which << finding.id;
    saves_time = saves_time || finding.gain.high_ns > 0;
  }
  if (saves_time) EXPECT_FALSE(diagnosis.healthy) << which;
  if (diagnosis.healthy) EXPECT_NE(diagnosis.verdict.bound.limit, analyze::Limit::kUnknown) << which;
}

// The more of the host's time is cut, the more is gained, and never more than the step or less than nothing.
void expect_cuts_monotone(const analyze::Study& s, uint32_t seed, const std::string& which) {
  if (s.host->chains.empty() || s.graph.window_start == analyze::kNoNode) return;
  std::mt19937 random(seed);
  const LaneId lane = s.host->chains[0].lanes[0];
  const analyze::Interval window = s.steps.window;
  analyze::WhatIf less;
  for (int i = 0; i < 6; ++i) {
    std::uniform_int_distribution<int64_t> pick(window.start_ns, window.end_ns);
    const int64_t a = pick(random);
    const int64_t b = pick(random);
    less.host.push_back({lane, std::min(a, b), std::max(a, b), 0.5});
    analyze::WhatIf more = less;
    for (analyze::HostCut& cut : more.host) cut.keep = 0;
    const auto gain = [&](const analyze::WhatIf& change, double removed) {
      const analyze::ReplayOptions options{.recording_removed = removed};
      return analyze::replay(s.graph, {}, options).end_ns - analyze::replay(s.graph, change, options).end_ns;
    };
    for (const double removed : {0.0, 0.5, 1.0, 2.0}) {
      const int64_t some = gain(less, removed);
      const int64_t all = gain(more, removed);
      EXPECT_GE(some, 0) << which;
      EXPECT_GE(all, some) << which;
      EXPECT_LE(all, window.end_ns - window.start_ns) << which;
    }
  }
}

void expect_reports_add_up(const Model& model, const std::string& which) {
  const analyze::ModuleTable modules = analyze::module_table(model, {});
  int64_t phases_ns = 0;
  for (const analyze::PhaseRow& row : modules.phases) phases_ns += row.device_ns;
  EXPECT_EQ(phases_ns, modules.work_ns) << which;
  for (const analyze::DeviceMemory& device : analyze::memory_report(model).devices) {
    const int64_t sum = std::accumulate(device.at_peak.begin(), device.at_peak.end(), int64_t{0});
    EXPECT_EQ(sum, device.peak.allocated_bytes) << which;
  }
}

TEST(Properties, findings_hold_on_random_traces) {
  for (uint32_t seed = 1000; seed < 1150 && !testing::Test::HasFailure(); ++seed) {
    const std::string which = "seed " + std::to_string(seed) + " ";
    const Model model = analyze::random_trace(seed);
    const Judged diagnosis = diagnose(model);
    expect_findings_within_a_step(diagnosis, which);
    expect_cuts_monotone(diagnosis.study, seed, which);
    expect_reports_add_up(model, which);
  }
}

TEST(Properties, findings_hold_on_real_traces) {
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FIRELANE_TEST_DATA)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".json.gz") && !path.ends_with(".lane")) continue;
    if (entry.file_size() > 300'000 && !is_deep_test()) continue;
    auto loaded = importer::load_trace(path);
    ASSERT_TRUE(loaded.ok()) << path;
    const Judged diagnosis = diagnose(loaded.value());
    expect_findings_within_a_step(diagnosis, path + " ");
    expect_cuts_monotone(diagnosis.study, 1, path);
    expect_reports_add_up(loaded.value(), path);
    ++seen;
  }
  EXPECT_GE(seen, 10U);
}

}  // namespace
}  // namespace firelane::advise

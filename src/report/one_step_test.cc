// What a step takes is one number: every verb says the same of the traces in tests/data.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "import/load.h"
#include "report/registry.h"

namespace firelane::report {
namespace {

// Facts of a report that are whole numbers, by name.
std::map<std::string, int64_t> numbers_of(const StudiedTrace& trace, std::string_view name) {
  const ReportSpec* spec = find_report(name);
  std::map<std::string, int64_t> out;
  const Report report = spec->make(trace, spec->arguments()).value();
  for (const Fact& fact : report.facts) {
    if (const auto* number = std::get_if<int64_t>(&fact.value)) out.emplace(fact.name, *number);
  }
  return out;
}

// Every fifth fixture: with sanitizers, all of them take a minute.
std::vector<std::string> fixtures() {
  std::set<std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(FIRELANE_TEST_DATA)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".lane") || path.ends_with(".json.gz")) all.insert(path);
  }
  std::vector<std::string> chosen;
  size_t at = 0;
  for (const std::string& path : all) {
    if (at++ % 5 == 0) chosen.push_back(path);
  }
  return chosen;
}

TEST(OneStep, every_verb_says_the_same_of_a_fixture) {
  size_t traces = 0;
  for (const std::string& path : fixtures()) {
    Result<Model> model = importer::load_trace(path);
    if (!model.ok()) continue;  // a fixture that must not load has a test of its own
    const StudiedTrace trace(std::move(model.value()));
    const std::map<std::string, int64_t> steps = numbers_of(trace, "steps");
    if (steps.at("step_count") == 0) continue;
    ++traces;
    const std::map<std::string, int64_t> said = numbers_of(trace, "diagnose");
    for (const char* verb : {"whatif", "breakdown", "cost", "steps", "input"}) {
      const std::map<std::string, int64_t> facts = numbers_of(trace, verb);
      EXPECT_TRUE(facts.contains("usual_recorded_ns")) << verb;
      for (const char* name : {"usual_ns", "usual_recorded_ns", "step_ns", "recorded_ns"}) {
        if (facts.contains(name)) EXPECT_EQ(facts.at(name), said.at(name)) << path << ": " << verb << ", " << name;
      }
    }
    const std::map<std::string, int64_t> info = numbers_of(trace, "info");
    if (info.contains("recorded_step_ns")) {
      EXPECT_EQ(info.at("recorded_step_ns"), said.at("usual_recorded_ns")) << path;
    }
    if (info.contains("true_step_ns")) EXPECT_EQ(info.at("true_step_ns"), said.at("usual_ns")) << path;
  }
  EXPECT_GT(traces, 20u);
}

}  // namespace
}  // namespace firelane::report

// What a step takes is one number: every verb says the same of the traces in tests/data.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/test_depth.h"
#include "import/load.h"
#include "report/registry.h"

namespace firelane::report {
namespace {

struct Said {
  std::map<std::string, int64_t> numbers;  // facts that are whole numbers, by name
  std::string steps;                       // "light", "full", or "" where all are of one kind
};

Said said_by(const StudiedTrace& trace, std::string_view name) {
  const ReportSpec* spec = find_report(name);
  Said out;
  const Report report = make_report(*spec, trace, spec->arguments()).value();
  for (const Fact& fact : report.facts) {
    if (const auto* number = std::get_if<int64_t>(&fact.value)) out.numbers.emplace(fact.name, *number);
    if (fact.name == "recorded_steps") out.steps = std::get<std::string>(fact.value);
  }
  return out;
}

// Some fixtures: with sanitizers, all of them take a minute.
std::vector<std::string> fixtures() {
  std::set<std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(FIRELANE_TEST_DATA)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".lane") || path.ends_with(".json.gz")) all.insert(path);
  }
  std::vector<std::string> chosen;
  size_t at = 0;
  for (const std::string& path : all) {
    if (is_in_sample(at++, 17)) chosen.push_back(path);
  }
  return chosen;
}

TEST(OneStep, every_verb_says_the_same_of_a_fixture) {
  size_t traces = 0;
  for (const std::string& path : fixtures()) {
    Result<Model> model = importer::load_trace(path);
    if (!model.ok()) continue;  // a fixture that must not load has a test of its own
    const StudiedTrace trace(std::move(model.value()));
    if (said_by(trace, "steps").numbers.at("step_count") == 0) continue;
    ++traces;
    std::map<std::string, Said> first;  // by which steps it is of
    const Said diagnosis = said_by(trace, "diagnose");
    first.emplace(diagnosis.steps, diagnosis);
    for (const char* verb : {"whatif", "breakdown", "cost", "steps", "input"}) {
      const Said said = said_by(trace, verb);
      EXPECT_TRUE(said.numbers.contains("usual_recorded_ns")) << verb;
      const Said& same = first.emplace(said.steps, said).first->second;
      for (const char* name : {"usual_recorded_ns", "step_ns", "recorded_ns"}) {
        if (!said.numbers.contains(name) || !same.numbers.contains(name)) continue;
        EXPECT_EQ(said.numbers.at(name), same.numbers.at(name)) << path << ": " << verb << ", " << name;
      }
      // Without recording a step takes what it takes.
      if (!said.numbers.contains("usual_ns")) continue;
      EXPECT_EQ(said.numbers.at("usual_ns"), diagnosis.numbers.at("usual_ns")) << path << ": " << verb;
    }
    const Said info = said_by(trace, "info");
    EXPECT_EQ(info.steps, "") << path << ": info is of the whole recording";
    for (const auto& [kind, name] :
         {std::pair{"", "recorded_step_ns"}, {"full", "recorded_step_ns"}, {"light", "light_step_ns"}}) {
      if (!info.numbers.contains(name) || !first.contains(kind)) continue;
      EXPECT_EQ(info.numbers.at(name), first.at(kind).numbers.at("usual_recorded_ns")) << path << ": " << name;
    }
    if (info.numbers.contains("true_step_ns")) {
      EXPECT_EQ(info.numbers.at("true_step_ns"), diagnosis.numbers.at("usual_ns")) << path;
    }
  }
  EXPECT_GT(traces, 10u);
}

}  // namespace
}  // namespace firelane::report

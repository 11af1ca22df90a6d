#include "always/why.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "base/shell_quoted.h"
#include "base/short_text.h"

namespace firelane::always {
namespace fs = std::filesystem;
namespace {

constexpr size_t kAround = 128;    // steps on each side
constexpr size_t kFewest = 8;      // that can be called usual
constexpr double kSlow = 1.25;     // of the usual
constexpr double kRecorded = 2.5;  // recording alone does not make a step slower than this
constexpr size_t kMostListed = 10;

int64_t median_of(std::vector<int64_t> values) {
  if (values.empty()) return -1;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Undisturbed lines of the same kind near `at`.
std::vector<const StepRow*> around(const std::vector<StepRow>& rows, size_t at) {
  std::vector<const StepRow*> found;
  const auto take = [&](size_t i) {
    if (!rows[i].recorded && rows[i].count == rows[at].count) found.push_back(&rows[i]);
  };
  for (size_t i = at, taken = found.size(); i-- > 0 && found.size() - taken < kAround;) take(i);
  const size_t before = found.size();
  for (size_t i = at + 1; i < rows.size() && found.size() - before < kAround; ++i) take(i);
  return found;
}

std::string text_of(int64_t ns) { return ns < 0 ? "unknown" : short_time(ns); }

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// The number in "step-48312-slow" or "step-48312.lane".
int64_t number_in(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("step-") ? std::strtoll(name.c_str() + 5, nullptr, 10) : -1;
}

// The window that has the step, else the nearest one.
std::optional<fs::path> nearest_window(const fs::path& run, int64_t step) {
  std::optional<fs::path> best;
  for (const fs::path& path : entries(run / "windows")) {
    if (path.extension() != ".lane" || number_in(path) < 0) continue;
    if (!best || std::abs(number_in(path) - step) < std::abs(number_in(*best) - step)) best = path;
  }
  return best;
}

void add_incidents(const fs::path& run, int64_t step, std::string& out) {
  for (const fs::path& folder : entries(run / "kept")) {
    if (step >= 0 && number_in(folder) != step) continue;
    out += "\nkept: " + folder.string() + "\n";
    for (const char* file : {"incident.txt", "collectives.txt", "verdict.txt"}) out += read_text(folder / file);
    for (const fs::path& path : entries(folder)) {
      if (path.extension() == ".lane") out += "  firelane diagnose " + shell_quoted(path.string()) + "\n";
      if (path.filename().string().starts_with("flight_rank"))
        out += "  firelane hangs " + shell_quoted(path.string()) + "\n";
      if (path.filename() == "stacks.txt") out += "  stacks of all threads: " + path.string() + "\n";
    }
  }
}

std::string times_usual(const StepStory& story) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2fx",
                static_cast<double>(story.step.host_ns) / static_cast<double>(std::max<int64_t>(1, story.usual_ns)));
  return text;
}

std::string name_of_step(const StepRow& row) {
  if (row.count == 1) return "step " + std::to_string(row.number);
  return "steps " + std::to_string(row.number) + " to " + std::to_string(row.number + row.count - 1);
}

std::string one_line(const StepStory& story) {
  std::string line = name_of_step(story.step) + ": " + text_of(story.step.host_ns);
  if (story.usual_ns < 0) return line + "; too few steps around it to compare with\n";
  line += ", usually " + text_of(story.usual_ns) + " (median of " + std::to_string(story.compared_with) +
          "): " + times_usual(story);
  return line + ", " + std::string(sentence_of(story.cause)) + "\n";
}

std::string whole(const StepStory& story) {
  std::string out = one_line(story);
  for (const StepPart& part : story.parts) {
    char line[160];
    std::snprintf(line, sizeof line, "  %-22.*s %12s   usually %s\n", static_cast<int>(part.name.size()),
                  part.name.data(), text_of(part.ns).c_str(), text_of(part.usual_ns).c_str());
    out += line;
  }
  return out;
}

std::string overview(const fs::path& run, const std::vector<StepRow>& rows) {
  std::vector<size_t> order;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].recorded) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rows[a].host_ns > rows[b].host_ns; });
  std::string out = std::to_string(rows.size()) + " lines of steps " + std::to_string(rows.front().number) + " to " +
                    std::to_string(rows.back().number) + "; the slowest:\n";
  size_t listed = 0;
  for (const size_t at : order) {
    const StepStory story = story_of(rows, at);
    if (story.cause == Cause::kNone) break;
    out += "  " + one_line(story);
    if (++listed == kMostListed) break;
  }
  if (listed == 0) out += "  none: all steps took about as long as the steps around them\n";
  add_incidents(run, -1, out);
  return out;
}

}  // namespace

std::string_view name_of(Cause cause) {
  static constexpr std::array<std::string_view, 8> kNames = {"none",   "input",     "garbage-collection", "saving",
                                                             "device", "computing", "not-running",        "recording"};
  return kNames[static_cast<size_t>(cause)];
}

std::string_view sentence_of(Cause cause) {
  static constexpr std::array<std::string_view, 8> kSentences = {
      "as long as usual",
      "waiting for input (DataLoader)",
      "garbage collection",
      "saving (torch.save)",
      "the GPU took longer",
      "the training thread computed longer (Python or operators on the CPU)",
      "the training thread was not running: blocked (I/O, a lock, another rank), or without a core",
      "because it was recorded",
  };
  return kSentences[static_cast<size_t>(cause)];
}

StepStory story_of(const std::vector<StepRow>& rows, size_t at) {
  StepStory story{.step = rows[at]};
  const std::vector<const StepRow*> others = around(rows, at);
  const auto usual = [&](int64_t StepRow::* field) {
    std::vector<int64_t> values;
    for (const StepRow* row : others) {
      if (row->*field >= 0) values.push_back(row->*field);
    }
    return median_of(std::move(values));
  };
  struct Kind {
    std::string_view name;
    int64_t StepRow::* field;
    Cause cause;
  };
  static constexpr std::array<Kind, 5> kKinds = {{{"waiting for input", &StepRow::input_ns, Cause::kInput},
                                                  {"garbage collection", &StepRow::gc_ns, Cause::kGc},
                                                  {"saving", &StepRow::save_ns, Cause::kSave},
                                                  {"on the GPU", &StepRow::device_ns, Cause::kDevice},
                                                  {"training thread on CPU", &StepRow::cpu_ns, Cause::kComputing}}};
  for (const Kind& kind : kKinds) {
    if (story.step.*kind.field >= 0) story.parts.push_back({kind.name, story.step.*kind.field, usual(kind.field)});
  }
  story.compared_with = static_cast<int64_t>(others.size());
  if (others.size() < kFewest) return story;
  story.usual_ns = usual(&StepRow::host_ns);
  const int64_t longer_ns = story.step.host_ns - story.usual_ns;
  if (static_cast<double>(story.step.host_ns) < kSlow * static_cast<double>(story.usual_ns)) return story;
  story.cause = Cause::kNotRunning;
  int64_t most_ns = longer_ns / 2;
  for (const Kind& kind : kKinds) {
    const int64_t usual_ns = usual(kind.field);
    if (story.step.*kind.field < 0 || usual_ns < 0) continue;
    const int64_t more_ns = story.step.*kind.field - usual_ns;
    // What a part explains, the thread's time on a core or the GPU's does not explain better.
    const bool is_general = kind.cause == Cause::kComputing || kind.cause == Cause::kDevice;
    if (more_ns < longer_ns / 2 || (is_general && story.cause != Cause::kNotRunning)) continue;
    if (!is_general && more_ns < most_ns) continue;
    story.cause = kind.cause;
    most_ns = more_ns;
  }
  const bool is_general =
      story.cause == Cause::kComputing || story.cause == Cause::kDevice || story.cause == Cause::kNotRunning;
  if (story.step.recorded && is_general &&
      static_cast<double>(story.step.host_ns) < kRecorded * static_cast<double>(story.usual_ns))
    story.cause = Cause::kRecording;
  return story;
}

Result<std::string> why(const fs::path& run, int64_t step) {
  FL_TRY(const std::vector<StepRow> rows, read_steps(run));
  if (step < 0) return overview(run, rows);
  const auto after = std::partition_point(rows.begin(), rows.end(), [&](const StepRow& r) { return r.number <= step; });
  const bool is_known = after != rows.begin() && step < std::prev(after)->number + std::prev(after)->count;
  std::string out;
  if (is_known) {
    out = whole(story_of(rows, static_cast<size_t>(std::prev(after) - rows.begin())));
  } else {
    out = "step " + std::to_string(step) + ": not in the log, which has steps " + std::to_string(rows.front().number) +
          " to " + std::to_string(rows.back().number + rows.back().count - 1) + "\n";
  }
  add_incidents(run, step, out);
  if (const std::optional<fs::path> window = nearest_window(run, step))
    out += "\nnearest steps in detail: firelane diagnose " + shell_quoted(window->string()) + "\n";
  return out;
}

}  // namespace firelane::always

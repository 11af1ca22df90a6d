#include "cli/kineto_trigger.h"

#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/shell_quoted.h"
#include "daemon/service.h"

namespace firelane::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kPollMs = 200;
constexpr int64_t kYoungS = 6;      // programs ask every five seconds: a new daemon knows all of them by then
constexpr int64_t kPatienceS = 60;  // beyond what the trace itself takes
constexpr std::string_view kLastKey = "\"traceName\"";  // Kineto writes it when all else is written

void sleep_ms(int64_t ms) { ::poll(nullptr, 0, static_cast<int>(ms)); }

std::vector<KinetoProcess> processes_in(const std::string& answer, std::string_view word) {
  std::vector<KinetoProcess> out;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    KinetoProcess process;
    if (words >> first >> process.pid >> process.own_pid && first == word) {
      words >> process.job;
      out.push_back(process);
    }
  }
  return out;
}

Result<std::string> ask_kineto(const std::string& command) {
  Result<std::string> answer = daemon::ask_daemon(command);
  if (!answer.ok()) return Error{answer.error().message + "; start one: firelane daemon"};
  std::string text = std::move(answer).value();
  if (text.starts_with("error: ")) return Error{text.substr(7, text.find('\n') - 7)};
  return text;
}

// Who is meant. A daemon that was just started is given the time in which every program asks it once.
Result<std::vector<KinetoProcess>> find_processes(const std::string& target) {
  const int64_t end_ns = daemon::now_ns() + kYoungS * kSecond;
  while (true) {
    FL_TRY(const std::string answer, ask_kineto("who " + target));
    std::vector<KinetoProcess> found = processes_in(answer, "asked");
    if (!found.empty()) return found;
    std::istringstream words(answer);  // "unknown: the daemon runs for N s ..."
    std::string word;
    int64_t age_s = kYoungS;
    while (words >> word && word != "for") {
    }
    words >> age_s;
    if (age_s >= kYoungS || daemon::now_ns() > end_ns)
      return Error{
          "the daemon does not know it; is it a PyTorch program that was started with KINETO_USE_DAEMON=1? "
          "firelane daemon --list"};
    sleep_ms(kPollMs);
  }
}

bool is_complete(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : 0;
  std::string tail(static_cast<size_t>(std::min<std::streamoff>(size, 4096)), '\0');
  in.seekg(size - static_cast<std::streamoff>(tail.size()));
  in.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  const size_t last = tail.find_last_not_of(" \n\r\t");
  return last != std::string::npos && tail[last] == '}' && tail.find(kLastKey) != std::string::npos;
}

Result<std::string> wait_for(const std::vector<std::string>& files, const KinetoTrigger& trigger) {
  std::vector<std::string> missing = files;
  std::string out;
  const int64_t end_ns = daemon::now_ns() + kPatienceS * kSecond + trigger.duration_ms * (kSecond / 1000);
  while (!missing.empty() && daemon::now_ns() < end_ns) {
    sleep_ms(kPollMs);
    std::erase_if(missing, [&](const std::string& file) {
      if (!is_complete(file)) return false;
      const std::string shown = shell_quoted(file);
      out += "wrote " + shown + "; next: firelane diagnose " + shown + ", firelane view " + shown + "\n";
      return true;
    });
  }
  if (missing.empty()) return out;
  return Error{out + missing.front() +
               ": not written; Kineto writes nothing into a folder that the program cannot write to, or in a container "
               "does not have, and none while another profiler runs" +
               (trigger.steps > 0 ? " or an optimizer makes no steps" : "") +
               "; a program that got no core for a second may have missed its warm-up: ask again"};
}

}  // namespace

std::string describe(const KinetoProcess& process) {
  std::ifstream in("/proc/" + std::to_string(process.pid) + "/cmdline", std::ios::binary);
  std::string command{std::istreambuf_iterator<char>(in), {}};
  while (command.ends_with('\0')) command.pop_back();
  for (char& c : command) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  if (command.size() > 100) command = command.substr(0, 97) + "...";
  std::string out = std::to_string(process.pid);
  if (process.own_pid != process.pid) out += " (" + std::to_string(process.own_pid) + " in its container)";
  if (process.job != 0) out += "  job " + std::to_string(process.job);
  return out + "  " + (command.empty() ? "unknown command" : command);
}

Result<std::vector<KinetoProcess>> known_processes() {
  FL_TRY(const std::string answer, ask_kineto("list"));
  return processes_in(answer, "process");
}

std::string kineto_config(const KinetoTrigger& trigger) {
  std::string out = "ACTIVITIES_LOG_FILE=" + trigger.output + "\n";
  out += "ACTIVITIES_DURATION_MSECS=" + std::to_string(trigger.duration_ms) + "\n";
  if (trigger.steps > 0) {
    // Kineto counts steps from the first request on, and takes that one by time; with a warm-up shorter than its own
    // five seconds that trace is empty (torch 2.11).
    out += "PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\nACTIVITIES_WARMUP_ITERATIONS=2\n";
    out += "ACTIVITIES_ITERATIONS=" + std::to_string(trigger.steps) + "\n";
  } else {
    out += "PROFILE_START_TIME=0\nACTIVITIES_WARMUP_PERIOD_SECS=1\n";
  }
  if (trigger.shapes) out += "PROFILE_REPORT_INPUT_SHAPES=true\n";
  if (trigger.memory) out += "PROFILE_PROFILE_MEMORY=true\n";
  if (trigger.stacks) out += "PROFILE_WITH_STACK=true\n";
  return out;
}

std::string trace_name(const std::string& output, int64_t own_pid) {
  return output.substr(0, output.size() - 5) + "_" + std::to_string(own_pid) + ".json";
}

Result<std::string> trace_by_daemon(KinetoTrigger trigger) {
  std::error_code error;
  trigger.output = fs::absolute(trigger.output, error).string();
  const bool has_control =
      std::ranges::any_of(trigger.output, [](char c) { return static_cast<unsigned char>(c) < ' '; });
  if (error || has_control || !trigger.output.ends_with(".json"))
    return Error{"-o: Kineto writes a file whose name ends in .json"};
  FL_TRY(const std::vector<KinetoProcess> meant, find_processes(trigger.target));
  std::vector<std::string> files;
  for (const KinetoProcess& process : meant) {
    files.push_back(trace_name(trigger.output, process.own_pid));
    if (!fs::exists(files.back(), error)) continue;
    if (!trigger.force) return Error{files.back() + " exists; add --force to replace it, or -o another name"};
    fs::remove(files.back(), error);  // an old one would look complete
  }
  FL_TRY(const std::string answer, ask_kineto(trigger.target + "\n" + kineto_config(trigger)));
  const std::vector<KinetoProcess> asked = processes_in(answer, "asked");
  if (asked.empty()) return Error{"it has ended"};
  files.clear();
  for (const KinetoProcess& process : asked) files.push_back(trace_name(trigger.output, process.own_pid));
  if (!trigger.no_wait) return wait_for(files, trigger);
  std::string out;
  for (size_t i = 0; i < asked.size(); ++i) out += "asked " + describe(asked[i]) + ": it will write " + files[i] + "\n";
  return out;
}

}  // namespace firelane::cli

#include "cli/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

extern char** environ;

namespace firelane::cli {

Result<ChildResult> run_child(const std::vector<std::string>& command, const ChildOptions& options) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (!options.log.empty()) {
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.log.c_str(), O_CREAT | O_WRONLY | O_TRUNC,
                                       0666);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  std::vector<std::string> settings;
  for (const auto& [name, value] : options.environment) settings.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view name = std::string_view(*each).substr(0, std::string_view(*each).find('='));
    const bool is_set = std::any_of(options.environment.begin(), options.environment.end(),
                                    [&](const auto& setting) { return setting.first == name; });
    if (!is_set) environment.push_back(*each);
  }
  for (std::string& setting : settings) environment.push_back(setting.data());
  environment.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Error{command[0] + ": " + std::strerror(failed)};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  return ChildResult{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), passed.count()};
}

std::string failure_of(const std::string& log, int exit_code) {
  std::string last_line;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    for (const char* words : {"OutOfMemoryError", "out of memory", "can't allocate memory", "MemoryError"}) {
      if (line.find(words) != std::string::npos) return "out of memory";
    }
    last_line = std::move(line);
  }
  if (exit_code == 128 + SIGKILL) return "killed, probably because the system ran out of memory";
  return "exit code " + std::to_string(exit_code) + (last_line.empty() ? "" : ": " + last_line);
}

std::string own_program() {
  std::error_code ignored;
  return std::filesystem::canonical("/proc/self/exe", ignored).string();
}

}  // namespace firelane::cli

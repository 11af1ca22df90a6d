#include "cli/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

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
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Error{command[0] + ": " + std::strerror(failed)};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  return ChildResult{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), passed.count()};
}

std::string own_program() {
  std::error_code ignored;
  return std::filesystem::canonical("/proc/self/exe", ignored).string();
}

}  // namespace firelane::cli

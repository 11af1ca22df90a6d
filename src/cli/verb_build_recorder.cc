// firelane build-recorder: compiles the recorder for a torch that none of the package fits.
//
// The work is done by the package (python/firelane/_build_recorder.py), in the Python whose torch is meant.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/python_site.h"
#include "cli/verbs.h"

namespace firelane::cli {

namespace {

namespace fs = std::filesystem;

struct BuildRecorderArgs {
  std::string python;
  std::string output;
  int64_t jobs = 0;
  bool no_gpu = false;
};

// The Python of the environment that this command is installed in, else the one on PATH.
std::string default_python() {
  std::error_code ignored;
  for (const char* name : {"python", "python3"}) {
    const fs::path beside = fs::canonical("/proc/self/exe", ignored).parent_path() / name;
    if (fs::exists(beside, ignored)) return beside.string();
  }
  return "python3";
}

Result<int> run_build_recorder(const BuildRecorderArgs& args) {
  const fs::path package = find_python_package();
  if (package.empty())
    return Error{
        "build-recorder: the Python package firelane is not installed next to this command; pip install firelane"};
  const char* path = std::getenv("PYTHONPATH");
  const std::string packages = package.parent_path().string();
  setenv("PYTHONPATH", (path != nullptr && *path != '\0' ? std::string(path) + ":" + packages : packages).c_str(), 1);
  std::vector<std::string> words = {args.python.empty() ? default_python() : args.python, "-m", "firelane",
                                    "build-recorder"};
  if (args.no_gpu) words.emplace_back("--no-gpu");
  if (!args.output.empty()) words.insert(words.end(), {"--output", args.output});
  if (args.jobs > 0) words.insert(words.end(), {"--jobs", std::to_string(args.jobs)});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return Error{"build-recorder: " + words[0] + ": " + std::strerror(errno) + "; name the Python with --python"};
}

}  // namespace

Verb build_recorder_verb() {
  return {.name = "build-recorder",
          .sentence = "Compile the recorder for a torch version that no recorder in this package fits.",
          .examples = {"firelane build-recorder", "CXX=clang++-19 firelane build-recorder --python .venv/bin/python"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<BuildRecorderArgs>();
            flags.add("--python", args->python,
                      "the Python whose torch to compile for (default: the one next to this command)");
            flags.add("--no-gpu", args->no_gpu, "leave out the GPU part, which needs CUPTI's headers");
            flags.add("--output", args->output, "the folder to write to (default: the user's cache)").value_name("DIR");
            flags.add("--jobs", args->jobs, "compilers to run in parallel (default: all cores)")
                .whole_number()
                .value_name("N");
            return [args] { return run_build_recorder(*args); };
          }};
}

}  // namespace firelane::cli

#include "cli/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace firelane::cli {

namespace {

// A name beside `path` that nobody else uses, so that the move to `path` stays on one file system.
std::string name_beside(const std::string& path) { return path + "." + std::to_string(::getpid()) + ".part"; }

}  // namespace

void add_file_options(Flags& flags, OutputOptions& options) {
  flags.add("-o,--output", options.path, "write to this file; - is standard output").value_name("FILE");
  flags.add("--force", options.force, "replace the output file if it exists");
}

void add_report_options(Flags& flags, OutputOptions& options) {
  flags.add("--json", options.json, "print one JSON object");
  flags.add("--csv", options.csv, "print comma-separated values");
  flags.add("--markdown", options.markdown, "print Markdown");
  flags.check_all([&options]() -> std::optional<Flags::Wrong> {  // excludes() would fill the help with each pair
    if (int{options.json} + int{options.csv} + int{options.markdown} < 2) return std::nullopt;
    return Flags::Wrong{"--json, --csv and --markdown", "give only one of them"};
  });
  flags.add("--wide", options.wide, "do not shorten long names");
  add_file_options(flags, options);
}

bool wants_color(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::strcmp(term, "dumb") == 0) return false;
  return ::isatty(::fileno(stream)) == 1;
}

Result<Output> Output::open(const OutputOptions& options) {
  Output output;
  output.form_ = options.json       ? report::Form::kJson
                 : options.csv      ? report::Form::kCsv
                 : options.markdown ? report::Form::kMarkdown
                                    : report::Form::kText;
  output.style_ = {.color = options.path == "-" && wants_color(stdout), .wide = options.wide};
  if (options.path == "-") return output;

  output.name_ = options.path;
  struct stat status{};
  const bool exists = ::stat(options.path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return Error{options.path + ": is a directory; give -o the name of a file"};
  if (exists && !S_ISREG(status.st_mode)) {  // /dev/null, a pipe: written in place
    output.stream_ = std::fopen(options.path.c_str(), "wb");
    if (output.stream_ == nullptr) return output.failure();
    return output;
  }
  if (exists && !options.force) return Error{options.path + " exists; add --force to replace it, or -o another name"};
  if (exists) {  // through a link, the file it names is replaced, not the link
    std::error_code error;
    const auto real = std::filesystem::canonical(options.path, error);
    if (!error) output.name_ = real.string();
  }
  FL_TRY_VOID(output.create());
  return output;
}

// A file without a name if the file system can (it is gone when the process dies), else one beside it.
Result<void> Output::create() {
  in_place_ = false;
  const std::string folder = std::filesystem::path(name_).parent_path().string();
  int fd = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    temporary_ = name_beside(name_);
    fd = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0) temporary_.clear();
  }
  if (fd < 0) return failure();
  stream_ = ::fdopen(fd, "wb");
  return {};
}

Result<void> Output::give_name() {
  if (temporary_.empty()) {
    const std::string open_file = "/proc/self/fd/" + std::to_string(::fileno(stream_));
    temporary_ = name_beside(name_);
    if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      const Error error = failure();
      temporary_.clear();
      return error;
    }
  }
  if (::rename(temporary_.c_str(), name_.c_str()) != 0) return failure();
  temporary_.clear();
  return {};
}

Output::Output(Output&& other) noexcept
    : stream_(std::exchange(other.stream_, stdout)),
      name_(std::move(other.name_)),
      in_place_(other.in_place_),
      temporary_(std::exchange(other.temporary_, {})),
      form_(other.form_),
      style_(other.style_) {}

Output::~Output() {
  if (stream_ != stdout && stream_ != nullptr) std::fclose(stream_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Error Output::failure() const { return Error{name_ + ": cannot be written: " + std::strerror(errno)}; }

Result<void> Output::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stream_) != bytes.size()) return failure();
  return {};
}

Result<void> Output::close() {
  if (std::fflush(stream_) != 0) return failure();
  if (!in_place_) FL_TRY_VOID(give_name());
  if (stream_ != stdout && std::fclose(std::exchange(stream_, stdout)) != 0) return failure();
  return {};
}

}  // namespace firelane::cli

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

// A new file beside `path`, so that the move at the end stays on one file system.
Result<std::FILE*> create_beside(const std::string& path, std::string& temporary) {
  temporary = path + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0) {
    temporary.clear();
    return Error{path + ": cannot be written: " + std::strerror(errno)};
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd, 0666 & ~mask);  // mkstemp makes it private
  return ::fdopen(fd, "wb");
}

}  // namespace

void add_file_options(CLI::App& app, OutputOptions& options) {
  app.add_option("-o,--output", options.path, "write to this file; - is standard output")->type_name("FILE");
  app.add_flag("--force", options.force, "replace the output file if it exists");
}

void add_report_options(CLI::App& app, OutputOptions& options) {
  app.add_flag("--json", options.json, "print one JSON object");
  app.add_flag("--csv", options.csv, "print comma-separated values");
  app.add_flag("--markdown", options.markdown, "print Markdown");
  app.parse_complete_callback([&options] {  // CLI11's excludes() would fill the help with each pair
    if (int{options.json} + int{options.csv} + int{options.markdown} > 1) {
      throw CLI::ValidationError("--json, --csv and --markdown", "give one of them");
    }
  });
  app.add_flag("--wide", options.wide, "do not shorten long names");
  add_file_options(app, options);
}

CLI::Validator whole_number() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        return digits ? "" : "'" + text + "' is not a whole number from 0 up";
      },
      "");
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
    if (output.stream_ == nullptr) return output.failure("cannot be written");
    return output;
  }
  if (exists && !options.force) return Error{options.path + " exists; add --force to replace it, or -o another name"};
  if (exists) {  // through a link, the file it names is replaced, not the link
    std::error_code error;
    const auto real = std::filesystem::canonical(options.path, error);
    if (!error) output.name_ = real.string();
  }
  FL_TRY(output.stream_, create_beside(output.name_, output.temporary_));
  return output;
}

Output::Output(Output&& other) noexcept
    : stream_(std::exchange(other.stream_, stdout)),
      name_(std::move(other.name_)),
      temporary_(std::exchange(other.temporary_, {})),
      form_(other.form_),
      style_(other.style_) {}

Output::~Output() {
  if (stream_ != stdout && stream_ != nullptr) std::fclose(stream_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Error Output::failure(const char* what) const { return Error{name_ + ": " + what + ": " + std::strerror(errno)}; }

Result<void> Output::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stream_) != bytes.size()) return failure("cannot be written");
  return {};
}

Result<void> Output::print(const report::Report& report) { return write(report::render(report, form_, style_)); }

Result<void> Output::close() {
  if (std::fflush(stream_) != 0) return failure("cannot be written");
  if (stream_ == stdout) return {};
  const int failed = std::fclose(std::exchange(stream_, stdout));
  if (failed != 0) return failure("cannot be written");
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), name_.c_str()) != 0) return failure("cannot be written");
  temporary_.clear();
  return {};
}

}  // namespace firelane::cli

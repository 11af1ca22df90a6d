// Where a verb's answer goes and in which form: --json --csv --markdown -o FILE --force --wide.
//
// Open the output before long work, so that a bad name is known at once. A file gets its name
// only by close(): when the verb fails or is killed, an older file stays as it was and no
// half-written one is left. Without -o, or with -o -, the answer goes to stdout.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/flags.h"
#include "report/table.h"

namespace firelane::cli {

struct OutputOptions {
  std::string path = "-";
  bool force = false;
  bool json = false;
  bool csv = false;
  bool markdown = false;
  bool wide = false;
};

// -o and --force: for verbs that write something other than a report.
void add_file_options(Flags& flags, OutputOptions& options);
// The above and the forms of a report.
void add_report_options(Flags& flags, OutputOptions& options);

// True when `stream` is a terminal that may be colored: not under NO_COLOR or TERM=dumb.
bool wants_color(std::FILE* stream);

class Output {
 public:
  static Result<Output> open(const OutputOptions& options);

  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();

  Result<void> write(std::string_view bytes);
  // Makes the file appear under its name. Without it nothing is left behind.
  Result<void> close();

  // What the user asked for.
  report::Form form() const { return form_; }
  const report::TextStyle& style() const { return style_; }

 private:
  Output() = default;
  Result<void> create();
  Result<void> give_name();
  Error failure() const;

  std::FILE* stream_ = stdout;
  std::string name_ = "standard output";  // for messages
  bool in_place_ = true;                  // stdout, a pipe, a device
  std::string temporary_;                 // name of the file until close(); "" when it has none yet
  report::Form form_ = report::Form::kText;
  report::TextStyle style_;
};

}  // namespace firelane::cli

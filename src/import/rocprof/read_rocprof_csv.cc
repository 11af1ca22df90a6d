#include <charconv>
#include <string>
#include <vector>

#include "import/rocprof/read_rocprof.h"
#include "import/rocprof/rocprof_rows.h"
#include "import/whole.h"

namespace firelane::importer {

namespace {

// The fields of the line at `at`, which moves behind it; quotes are taken off, doubled ones are one.
void next_line(std::string_view text, size_t& at, std::vector<std::string>& fields) {
  fields.clear();
  std::string field;
  bool in_quotes = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_quotes) {
      if (c != '"') {
        field += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        field += text[++at];
      } else {
        in_quotes = false;
      }
    } else if (c == '"') {
      in_quotes = true;
    } else if (c == ',') {
      fields.push_back(std::move(field));
      field.clear();
    } else if (c == '\n') {
      ++at;
      break;
    } else if (c != '\r') {
      field += c;
    }
  }
  fields.push_back(std::move(field));
}

// The first number in a text: 2 of "Agent 2"; kNoNumber when there is none.
int64_t number_in_text(std::string_view text) {
  const size_t at = text.find_first_of("0123456789");
  int64_t number = 0;
  if (at == std::string_view::npos) return kNoNumber;
  const auto parsed = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return parsed.ec == std::errc{} ? number : kNoNumber;
}

class RocprofCsv {
 public:
  Result<RawTrace> run(std::string_view text, const ReadRequest& request) {
    raw_.info.content_bytes = text.size();
    size_t at = 0;
    next_line(text, at, header_);
    while (at < text.size()) {
      next_line(text, at, fields_);
      if (fields_.size() == 1 && fields_[0].empty()) continue;
      if (fields_.size() != header_.size()) {
        ++rows_.losses()[Stat::kLineMalformed];
        continue;
      }
      add_line();
    }
    if (rows_.empty()) return Error{request.name + ": a CSV file of rocprofv3 without events"};
    describe_rocprof(raw_.info, "CSV");
    return std::move(raw_);
  }

 private:
  std::string_view field(std::string_view name) const {
    for (size_t i = 0; i < header_.size(); ++i) {
      if (header_[i] == name) return fields_[i];
    }
    return {};
  }
  int64_t number(std::string_view name) const { return number_in_text(field(name)); }
  bool has(std::string_view name) const {
    for (const std::string& each : header_) {
      if (each == name) return true;
    }
    return false;
  }

  void add_line() {
    const int64_t start = number("Start_Timestamp");
    const int64_t end = number("End_Timestamp");
    const int64_t correlation = number("Correlation_Id");
    if (has("Kernel_Name")) {
      RocprofDispatch out{.start_ns = start,
                          .end_ns = end,
                          .device = number("Agent_Id") == kNoNumber ? 0 : number("Agent_Id"),
                          .stream = number("Stream_Id"),
                          .queue = number("Queue_Id"),
                          .correlation = correlation,
                          .kernel = field("Kernel_Name"),
                          .group_segment_bytes = number("LDS_Block_Size"),
                          .registers = number("VGPR_Count")};
      static constexpr std::string_view kGrid[] = {"Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z"};
      static constexpr std::string_view kGroup[] = {"Workgroup_Size_X", "Workgroup_Size_Y", "Workgroup_Size_Z"};
      for (size_t i = 0; i < 3; ++i) {
        out.grid[i] = number(kGrid[i]);
        out.workgroup[i] = number(kGroup[i]);
      }
      rows_.add(out);
    } else if (has("Direction")) {
      const int64_t to = number("Destination_Agent_Id");
      rows_.add(RocprofCopy{.start_ns = start,
                            .end_ns = end,
                            .device = to == kNoNumber ? 0 : to,
                            .stream = number("Stream_Id"),
                            .correlation = correlation,
                            .direction = field("Direction")});
    } else {
      const int64_t process = number("Process_Id");
      const int64_t thread = number("Thread_Id");
      rows_.add(RocprofRegion{.start_ns = start,
                              .end_ns = end,
                              .pid = process == kNoNumber ? 0 : process,
                              .tid = thread == kNoNumber ? 0 : thread,
                              .correlation = correlation,
                              .category = field("Domain"),
                              .name = field("Function")});
    }
  }

  RawTrace raw_;
  RocprofRows rows_{raw_};
  std::vector<std::string> header_;
  std::vector<std::string> fields_;
};

}  // namespace

bool is_rocprof_csv(std::string_view begin) {
  const std::string_view line = begin.substr(0, begin.find('\n'));
  const bool starts_as_one = line.starts_with("\"Kind\"") || line.starts_with("Kind,") ||
                             line.starts_with("\"Domain\"") || line.starts_with("Domain,");
  return starts_as_one && line.find("Start_Timestamp") != std::string_view::npos &&
         line.find("End_Timestamp") != std::string_view::npos;
}

Reader rocprof_csv_reader() {
  return {"rocprofv3 CSV", is_rocprof_csv,
          [](std::unique_ptr<ByteSource> content, const ReadRequest& request) -> Result<RawTrace> {
            FL_TRY(const std::string bytes, read_whole_content(*content, request));
            FL_TRY(RawTrace raw, RocprofCsv().run(bytes, request));
            raw.losses.add(content->losses());
            return raw;
          }};
}

}  // namespace firelane::importer

// firelane dump FILE
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "format/dump.h"
#include "import/byte_source.h"
#include "report/dump.h"

namespace firelane::cli {

namespace {

struct DumpArgs {
  std::string path;
  JoinedPaths joined;
  report::DumpOptions options;
  bool json = false;
  bool records = false;
  OutputOptions output;
};

// What stands in a .lane file, before anything is sorted or linked.
Result<int> run_dump_records(const DumpArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const std::unique_ptr<importer::ByteSource> file, importer::open_file(args.path));
  std::string bytes(file->total_bytes(), '\0');
  bytes.resize(file->read(bytes.data(), bytes.size()));
  FL_TRY(const std::string text, format::dump_lane(bytes, args.path));
  FL_TRY_VOID(output.write(text));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

Result<int> run_dump(const DumpArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path, args.joined));
  const Model& model = trace->model();
  report::DumpOptions options = args.options;
  options.form = args.json ? report::DumpForm::kJsonLines : report::DumpForm::kText;
  FL_TRY_VOID(report::dump(model, options, [&output](std::string_view lines) { return output.write(lines); }));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb dump_verb() {
  return {.name = "dump",
          .sentence = "Print the rows of the trace as they were read, one line each.",
          .examples = {"firelane dump trace.json.gz --table host_slices --rows 10",
                       "firelane dump trace.json.gz --table device_slices --args --json"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<DumpArgs>();
            add_trace_argument(flags, args->path);
            add_joined_options(flags, args->joined);
            flags.add("--table", args->options.tables, "only this table; may be given more than once (default: all)")
                .one_of(report::dump_table_names())
                .once_each();
            flags.add("--rows", args->options.max_rows, "at most this many rows of each table; 0 = all")
                .whole_number()
                .value_name("N");
            flags.add("--args", args->options.args, "add the whole source event to each row that has one (slow)");
            flags.add("--json", args->json, "one JSON object per line instead of text");
            flags.add("--records", args->records, "the raw records of a .lane file, in file order, instead of rows")
                .excludes("--json");
            add_file_options(flags, args->output);
            return [args] { return args->records ? run_dump_records(*args) : run_dump(*args); };
          }};
}

}  // namespace firelane::cli

// firelane view FILE...|DIR: the viewer, in the browser, fed by a server on this machine's loopback.
#include <memory>
#include <string>
#include <vector>

#include "cli/rank_files.h"
#include "cli/verbs.h"
#include "cli/viewing.h"

namespace firelane::cli {

namespace {

struct ViewArgs {
  std::vector<std::string> paths;
  ViewOptions options;
};

Result<int> run_view(const ViewArgs& args) {
  if (!args.options.joined.empty() && (args.paths.size() > 1 || is_job_folder(args.paths[0]))) {
    return join_needs_one_trace();
  }
  if (args.paths.size() == 1 && is_job_folder(args.paths[0])) {
    return serve_ranks(args.paths, {.use_parts = true}, -1, args.options);
  }
  return serve_traces(args.paths, args.options);
}

}  // namespace

Verb view_verb() {
  return {.name = "view",
          .sentence =
              "Open traces in the browser: findings, timeline, tables, flame graphs, memory, SQL; two are compared, a "
              "folder is a job of many ranks.",
          .examples = {"firelane view trace.json.gz", "firelane view before.lane after.lane --port 8000 --no-open"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<ViewArgs>();
            flags
                .add("FILE", args->paths,
                     "the traces, or the folder of a job: .lane, .json (.gz, .zst), other tools' (docs/formats), or - "
                     "for standard input")
                .required()
                .value_name("");
            add_view_options(flags, args->options);
            add_joined_options(flags, args->options.joined);
            return [args] { return run_view(*args); };
          }};
}

}  // namespace firelane::cli

// firelane whatif FILE --kernels 0.5
#include "analyze/verdict/study.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "report/study_reports.h"

namespace firelane::cli {

namespace {

struct WhatIfArgs {
  std::string path;
  analyze::WhatIf change;
  std::vector<std::string> without;
  std::vector<std::string> kernels;  // NAME=FACTOR
  OutputOptions output;
};

const std::vector<std::string> kWithout = {"input", "gc", "loading", "syncs"};

void leave_out(const Model& model, const analyze::Study& study, const std::string& what, analyze::WhatIf& change) {
  if (what == "syncs") {
    for (const analyze::SyncRow& sync : study.syncs.rows) {
      change.waits.push_back(sync.call);
      change.host.push_back({model.host_slices.lane[sync.call], sync.start_ns, sync.start_ns + sync.duration_ns, 0});
    }
    return;
  }
  const analyze::Activity wanted = what == "input" ? analyze::Activity::kInput
                                   : what == "gc"  ? analyze::Activity::kGc
                                                   : analyze::Activity::kLoading;
  for (const analyze::HostChain& chain : study.host.chains) {
    for (const analyze::HostSegment& segment : chain.segments) {
      if (segment.activity == wanted) change.host.push_back({chain.lanes[0], segment.start_ns, segment.end_ns, 0});
    }
  }
}

// "gemm=0.5": kernels whose name contains gemm take half as long.
Result<void> scale_kernels(const Model& model, const std::string& text, analyze::WhatIf& change) {
  const size_t equals = text.rfind('=');
  double factor = -1;
  if (equals != std::string::npos) {
    try {
      factor = std::stod(text.substr(equals + 1));
    } catch (const std::exception&) {
      factor = -1;
    }
  }
  if (factor < 0) return Error{"--kernel " + text + ": write it as NAME=FACTOR, for example gemm=0.5"};
  const std::string name = text.substr(0, equals);
  size_t found = 0;
  for (Row row = 0; row < model.device_slices.size(); ++row) {
    if (model.text(model.device_slices.name[row]).find(name) == std::string_view::npos) continue;
    change.device.push_back({row, factor});
    ++found;
  }
  if (found == 0) return Error{"--kernel " + text + ": no device work has such a name; firelane kernels lists them"};
  return {};
}

Result<int> run_whatif(const WhatIfArgs& args) {
  FL_TRY(Output output, Output::open(args.output));
  FL_TRY(const auto trace, open_trace(args.path));
  const Model& model = trace->model();
  const auto& result = trace->get<analyze::study>();
  analyze::WhatIf change = args.change;
  for (const std::string& what : args.without) leave_out(model, result, what, change);
  for (const std::string& kernel : args.kernels) FL_TRY_VOID(scale_kernels(model, kernel, change));
  FL_TRY_VOID(output.print(report::whatif_report(result, change)));
  FL_TRY_VOID(output.close());
  return kExitOk;
}

}  // namespace

Verb whatif_verb() {
  return {.name = "whatif",
          .sentence = "How long a step would take if something cost less: the trace's dependencies, replayed.",
          .examples = {"firelane whatif trace.json.gz --without input",
                       "firelane whatif trace.json.gz --kernel gemm=0.5 --host 0.8"},
          .setup = [](Flags& flags) -> VerbBody {
            auto args = std::make_shared<WhatIfArgs>();
            add_trace_argument(flags, args->path);
            const auto factor = [&](const char* name, double& value, const char* what) {
              flags.add(name, value, std::string(what) + " takes this part of its time (1 = as it is, 0 = free)")
                  .between(0.0, 100.0)
                  .value_name("FACTOR");
            };
            factor("--host", args->change.keep_host, "what the host does itself");
            factor("--kernels", args->change.keep_kernels, "computing");
            factor("--communication", args->change.keep_communication, "communication");
            factor("--copies", args->change.keep_copies, "copying and setting memory");
            factor("--latency", args->change.keep_latency, "latency from launch to start");
            flags.add("--without", args->without, "leave this out; may be repeated").one_of(kWithout);
            flags
                .add("--kernel", args->kernels,
                     "device work whose name contains NAME takes FACTOR of its time; may be repeated")
                .value_name("NAME=FACTOR");
            add_report_options(flags, args->output);
            return [args] { return run_whatif(*args); };
          }};
}

}  // namespace firelane::cli

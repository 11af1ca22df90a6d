#include "advise/device_words.h"

#include <algorithm>
#include <array>

namespace firelane::advise {

namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

struct Words {
  std::string_view module;  // torch.MODULE
  std::string_view platform;
  std::string_view graphs;  // "": it has none
  std::string_view unit;
};

// In the order of Accelerator.
constexpr std::array<Words, 9> kWords = {{
    {"cuda", "CUDA", "CUDA graphs", "tensor cores"},
    {"cuda", "CUDA", "CUDA graphs", "tensor cores"},
    {"cuda", "HIP", "HIP graphs", "matrix cores"},  // torch on ROCm keeps the name torch.cuda
    {"xpu", "SYCL", "", "XMX"},
    {"hpu", "Gaudi runtime", "HPU graphs", "MME"},
    {"mtia", "MTIA runtime", "", "dot product engine"},
    {"npu", "CANN", "NPU graphs", "Cube unit"},  // torch.npu.NPUGraph
    {"xla", "TPU runtime", "jax.jit", "MXU"},
    {"privateuseone", "device runtime", "", "matrix unit"},
}};

// Advice for programs of JAX, by the rule that it replaces.
struct JaxAdvice {
  std::string_view id, try_text, try_code, confirm_by;
};
constexpr JaxAdvice kJaxAdvice[] = {
    {"launch-overhead",
     "do more in one call: jit the whole step, run several steps in one lax.scan, or use a larger batch",
     "train_step = jax.jit(train_step, donate_argnums=0)", "time a few steps without the profiler"},
    {"host-code", "do it less often or in another thread: dispatch is asynchronous until a value is read",
     "if step % 100 == 0: log(float(loss))  # reading a value waits for the device",
     "record with python_tracer_level = 1 (jax.profiler.ProfileOptions), to see which function it is"},
    {"host-sync", "keep values on the device; float(x), x.item(), np.asarray(x) and block_until_ready() wait for it",
     "losses.append(loss)  # an array; read them all at the end", "record with python_tracer_level = 1"},
    {"input-bound", "prepare the next batch while this one is computed, and put it on the device early",
     "batch = jax.device_put(next(batches))  # before the step that uses it", "time some steps with one fixed batch"},
    {"small-batch", "double the batch size as long as the time per sample falls", "batch_size *= 2",
     "time one step with twice the batch: the gain is per sample, not per step"},
    {"exposed-copies", "keep arrays on the device between steps, and donate those that are replaced",
     "jax.jit(step, donate_argnums=(0,))", "look at the copies in the timeline"},
    {"one-time-costs", "run a few steps before the profiler is started",
     "for _ in range(5): train_step().block_until_ready()  # then jax.profiler.start_trace(...)", ""},
    {"recording-distorts", "record less of the host",
     "options = jax.profiler.ProfileOptions(); options.python_tracer_level = 0; options.host_tracer_level = 1",
     "time the same steps without the profiler"},
    {"exposed-communication", "let XLA overlap collectives with compute, or shard so that less is exchanged",
     "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true",
     "record all hosts: waiting for a slow one looks the same"},
};

bool is_xla(const TraceInfo& info) { return info.origin == Origin::kXPlane; }

bool speaks_torch(const Finding& finding) {
  for (const std::string* text : {&finding.try_text, &finding.try_code}) {
    for (const std::string_view word : {"torch", "DataLoader", "DistributedDataParallel", "optimizer.", "model."}) {
      if (text->find(word) != std::string::npos) return true;
    }
  }
  return false;
}

// Whether anything of it is left to say in JAX's words.
bool fit_to_jax(Finding& finding) {
  const auto own = std::find_if(std::begin(kJaxAdvice), std::end(kJaxAdvice),
                                [&](const JaxAdvice& each) { return each.id == finding.id; });
  if (own != std::end(kJaxAdvice)) {
    finding.try_text = own->try_text;
    finding.try_code = own->try_code;
    if (!finding.confirm_by.empty()) finding.confirm_by = own->confirm_by;
  } else if (speaks_torch(finding)) {
    return false;
  }
  return true;
}

// How to record more, by who recorded: rules name torch.profiler's options.
void fit_recording(const TraceInfo& info, std::string& text) {
  const bool is_cuda = info.accelerator == Accelerator::kCuda || info.accelerator == Accelerator::kUnknown;
  if (!is_cuda) {  // which have no such records
    replace_all(text, "record with enable_cuda_sync_events=True, and with_stack=True to see the line",
                "record with with_stack=True to see the line");
    replace_all(text, "enable_cuda_sync_events=True, and ", "");
    // Our own recorder sees the work of NVIDIA's GPUs alone.
    replace_all(text, ", or record with firelane, which does", "");
    replace_all(text, ", or with firelane", "");
    replace_all(text, "record with firelane, which times steps without recording too, or without stacks and shapes",
                "record without stacks and shapes");
    replace_all(text, "from firelane.profiler import profile", "profile(record_shapes=False, with_stack=False)");
    replace_all(text, " (firelane record -- torchrun train.py)", "");
  }
  if (info.origin == Origin::kNsight) {
    replace_all(text, "enable_cuda_sync_events=True", "nsys profile --cuda-event-trace=true");
    replace_all(text, "with_stack=True", "firelane record --stacks");
    replace_all(text, "record_shapes=True", "nsys profile --pytorch=autograd-shapes-nvtx");
    if (text.starts_with("schedule(")) text = "nsys profile --delay=30 ...  # seconds";
  }
  if (info.origin == Origin::kRocprof) {
    if (text.starts_with("schedule(")) text = "rocprofv3 --collection-period 30:10:1 ...  # delay, length, how often";
    replace_all(text, "with_stack=True", "torch.profiler on ROCm, and with_stack=True");
  }
}

}  // namespace

std::string_view matrix_unit(Accelerator accelerator) { return kWords[static_cast<size_t>(accelerator)].unit; }

std::string in_device_words(std::string text, Accelerator accelerator) {
  if (accelerator == Accelerator::kUnknown || accelerator == Accelerator::kCuda) return text;
  const Words& words = kWords[static_cast<size_t>(accelerator)];
  const std::string module(words.module);
  replace_all(text, "tensor cores", words.unit);
  if (words.graphs.empty()) {
    replace_all(text, "CUDA graphs, ", "");
    replace_all(text, "CUDA graphs", "graphs of the device");
  }
  replace_all(text, "CUDA graphs", words.graphs);
  replace_all(text, "CUDA graph", words.graphs.substr(0, words.graphs.size() - (words.graphs.ends_with('s') ? 1 : 0)));
  if (accelerator == Accelerator::kNpu) replace_all(text, "loading kernels", "compiling or looking up operators");
  if (accelerator == Accelerator::kHip) {
    replace_all(text, "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF");
    replace_all(text, "cudaHostAlloc", "hipHostMalloc");
    replace_all(text, "cudaMalloc", "hipMalloc");
    replace_all(text, "cudaFree", "hipFree");
  } else {
    replace_all(text, "PYTORCH_CUDA_ALLOC_CONF",
                accelerator == Accelerator::kNpu ? "PYTORCH_NPU_ALLOC_CONF" : "PYTORCH_ALLOC_CONF");
    replace_all(text, "torch.cuda.", "torch." + module + ".");
    replace_all(text, "'cuda'", "'" + module + "'");
    replace_all(text, "\"cuda\"", "\"" + module + "\"");
  }
  replace_all(text, "CUDA", words.platform);
  return text;
}

std::string fit_words(Origin origin, Accelerator accelerator, std::string text) {
  if (origin == Origin::kXPlane) {
    replace_all(text, "PyTorch operators", "JAX functions");
    replace_all(text, "inside operators", "inside JAX functions");
    replace_all(text, "between operators", "between JAX functions");
  }
  return in_device_words(std::move(text), accelerator);
}

void fit_to_device(const TraceInfo& info, std::vector<Finding>& findings) {
  const bool is_nvidia = info.accelerator == Accelerator::kCuda || info.accelerator == Accelerator::kUnknown;
  const bool is_hip = info.accelerator == Accelerator::kHip;
  std::erase_if(findings, [&](Finding& finding) {
    if (is_xla(info) && !fit_to_jax(finding)) return true;
    for (std::string* text : {&finding.title, &finding.try_text, &finding.try_code, &finding.confirm_by}) {
      *text = fit_words(info.origin, info.accelerator, std::move(*text));
      fit_recording(info, *text);
    }
    // Settings of cuBLAS and cuDNN, which torch on ROCm has under the same names, and others do not.
    return !is_nvidia && !is_hip && finding.try_code.find("torch.backends.cu") != std::string::npos;
  });
}

std::string fit_meaning(const TraceInfo& info, std::string meaning) {
  const std::string_view word = device_word(info.accelerator);
  if (word != "GPU") replace_all(meaning, "GPU", word);
  return meaning;
}

std::string_view how_to_mark_steps(Origin origin) {
  switch (origin) {
    case Origin::kXPlane: return "mark them with jax.profiler.StepTraceAnnotation(\"train\", step_num=i)";
    case Origin::kNsight: return "push an NVTX range called \"step N\" around each iteration";
    case Origin::kRocprof: return "push a ROCTx range called \"step N\" around each iteration";
    case Origin::kPerfetto:
    case Origin::kStacks: return "record with firelane or torch.profiler, and call prof.step() after each iteration";
    case Origin::kAscend: return "call prof.step() of torch_npu.profiler.profile() after each iteration";
    default: return kCallStep;
  }
}

std::string fit_note(const TraceInfo& info, std::string note) {
  const std::string_view words = how_to_mark_steps(info.origin);
  if (words != kCallStep) {
    replace_all(note, kCallStep, words);
  } else if (info.environment.front == Front::kTorch) {  // whose step() marks nothing without a schedule
    replace_all(note, kCallStep, "record with schedule=..., and " + std::string(kCallStep));
  }
  fit_recording(info, note);
  return fit_words(info.origin, info.accelerator, std::move(note));
}

}  // namespace firelane::advise

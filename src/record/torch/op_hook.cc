#include "record/torch/op_hook.h"

#include <ATen/record_function.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <memory>

#include "record/core/thread_buffer.h"
#include "record/torch/collective_args.h"
#include "record/torch/cpu_memory.h"
#include "record/torch/input_capture.h"

namespace firelane {
namespace {

// torch numbers threads by itself, and a backward op knows its forward op's thread by that number.
// Traces speak of system thread ids.
constexpr size_t kMaxThreads = 4096;
std::array<std::atomic<uint32_t>, kMaxThreads> g_system_ids{};
constinit thread_local bool t_is_known __attribute__((tls_model("initial-exec"))) = false;

std::atomic<bool> g_inherited{false};

void remember_thread(const at::RecordFunction& fn, const ThreadBuffer& buffer) noexcept {
  t_is_known = true;
  if (fn.threadId() < kMaxThreads) {
    g_system_ids[fn.threadId()].store(buffer.system_thread_id(), std::memory_order_relaxed);
  }
}

int64_t system_id(uint64_t torch_thread) noexcept {
  return torch_thread < kMaxThreads ? g_system_ids[torch_thread].load(std::memory_order_relaxed) : 0;
}

// The names of dispatcher ops lie in their schemas and stay: their address is their key, one per overload. All other
// names are strings of the caller's, found by content. A string cannot lie where a schema does, so
// an address that was once a schema's needs no second look.
[[gnu::noinline]] TextSlot new_name(ThreadBuffer* b, const at::RecordFunction& fn, const char* name) noexcept {
  try {
    if (const auto op = fn.operator_name(); op.has_value()) {
      return b->define_op(reinterpret_cast<uintptr_t>(name), name, op->overload_name);
    }
  } catch (...) {  // no memory for the copy that operator_name() makes
  }
  return b->text(name);
}

inline TextSlot name_of(ThreadBuffer* b, const at::RecordFunction& fn) noexcept {
  const char* name = fn.name();
  const TextSlot slot = b->find(reinterpret_cast<uintptr_t>(name));
  return slot != kNoSlot ? slot : new_name(b, fn, name);
}

// The inputs of an op and their key; without values for hooks that do not look at them.
struct Inputs {
  c10::ArrayRef<const c10::IValue> values;
  InputValues detail = InputValues::kLeaveOut;
  uint64_t key = 0;
};

[[gnu::noinline]] TextSlot define_inputs(ThreadBuffer* b, const Inputs& inputs) noexcept {
  InputBlob blob;
  capture_inputs(inputs.values, inputs.detail, blob);
  return b->define_content(inputs.key, blob.bytes());
}

// After the begin, whose name may have taken the slot in between.
inline void attach_inputs(ThreadBuffer* b, const Inputs& inputs) noexcept {
  if (inputs.values.empty()) return;
  TextSlot slot = b->find_content(inputs.key);
  if (slot == kNoSlot) [[unlikely]]
    slot = define_inputs(b, inputs);
  b->attribute(Attribute::kInputs, slot);
}

// User ranges may end in any order and on any thread (a generator, a future): they are written as
// ranges with an id. The object's address is unique while the range is open.
[[gnu::noinline]] void begin_user_range(const at::RecordFunction& fn, const Inputs& inputs) noexcept {
  ThreadBuffer* b = recording_thread();
  if (b == nullptr) return;
  const TextSlot name = b->text(fn.name());
  b->async_begin(now_ticks(), name, Scope::kUser, reinterpret_cast<uintptr_t>(&fn));
  attach_inputs(b, inputs);
}

[[gnu::noinline]] void end_user_range(const at::RecordFunction& fn, uint64_t ticks) noexcept {
  if (ThreadBuffer* b = recording_thread()) b->async_end(ticks, reinterpret_cast<uintptr_t>(&fn));
}

[[gnu::noinline]] void begin_collective(ThreadBuffer* b, const at::RecordFunction& fn) noexcept {
  const std::string args = collective_args(fn);
  b->begin(now_ticks(), b->text(fn.name()), static_cast<Scope>(fn.scope()));
  if (!args.empty()) b->attribute(Attribute::kExtraArgs, b->text(args));
}

inline void begin(ThreadBuffer* b, const at::RecordFunction& fn) noexcept {
  if (fn.isNcclMeta()) [[unlikely]]
    return begin_collective(b, fn);
  const TextSlot name = name_of(b, fn);
  const auto scope = static_cast<Scope>(fn.scope());
  const int64_t sequence = fn.seqNr();
  if (sequence < 0) return b->begin(now_ticks(), name, scope);
  if (!t_is_known) [[unlikely]]
    remember_thread(fn, *b);
  b->begin(now_ticks(), name, scope, sequence);
  if (const uint64_t forward = fn.forwardThreadId(); forward != 0) [[unlikely]] {
    if (const int64_t id = system_id(forward); id != 0) b->attribute(Attribute::kForwardThread, id);
  }
}

[[gnu::noinline]] void not_recording() noexcept {
  if (g_inherited.load(std::memory_order_relaxed)) park_hooks_in_child();
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& fn) {
  if (fn.scope() == at::RecordScope::USER_SCOPE) [[unlikely]] {
    begin_user_range(fn, {});
  } else if (ThreadBuffer* b = recording_thread_for_begin()) [[likely]] {
    begin(b, fn);
  } else {
    not_recording();
  }
  return nullptr;
}

template <InputValues detail>
std::unique_ptr<at::ObserverContext> on_begin_with_inputs(const at::RecordFunction& fn) {
  // What is done before the clock is read is our time, not the op's.
  Inputs inputs;
  if (is_recording()) [[likely]] {
    inputs = {.values = fn.inputs(), .detail = detail, .key = 0};
    inputs.key = key_of_inputs(inputs.values, detail);
  }
  if (fn.scope() == at::RecordScope::USER_SCOPE) [[unlikely]] {
    begin_user_range(fn, inputs);
  } else if (ThreadBuffer* b = recording_thread_for_begin()) [[likely]] {
    if (!inputs.values.empty() && b->find_content(inputs.key) == kNoSlot) [[unlikely]]
      define_inputs(b, inputs);
    begin(b, fn);
    attach_inputs(b, inputs);
  } else {
    not_recording();
  }
  return nullptr;
}

void on_end(const at::RecordFunction& fn, at::ObserverContext*) {
  const uint64_t ticks = now_ticks();
  if (fn.scope() == at::RecordScope::USER_SCOPE) [[unlikely]] {
    end_user_range(fn, ticks);
  } else if (ThreadBuffer* b = recording_thread_for_end()) [[likely]] {
    b->end(ticks, ScopeGroup::kOp);
  }
}

struct Hook {
  at::RecordFunctionCallback::StartCallback start = nullptr;
  bool needs_inputs = false;
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  bool on = false;
};

std::array<Hook, 3> g_hooks = {{
    {.start = on_begin},
    {.start = on_begin_with_inputs<InputValues::kLeaveOut>, .needs_inputs = true},
    {.start = on_begin_with_inputs<InputValues::kKeep>, .needs_inputs = true},
}};

// torch builds the callbacks of every scope anew, twice for each node of a backward pass; the scopes that programs do
// not have (tags of selective builds, the mobile interpreter, static runtime) are a sixth of what an empty callback
// adds to one. Ops inside of those are recorded.
at::RecordFunctionCallback callback_of(const Hook& hook) {
  using at::RecordScope;
  at::RecordFunctionCallback callback(hook.start, on_end);
  callback.needsInputs(hook.needs_inputs);
  callback.scopes({RecordScope::FUNCTION, RecordScope::BACKWARD_FUNCTION, RecordScope::TORCHSCRIPT_FUNCTION,
                   RecordScope::USER_SCOPE});
  return callback;
}

}  // namespace

void enable_op_hook(OpDetail detail) {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] {
    t_is_known = false;
    for (const Hook& hook : g_hooks) {
      if (hook.on) g_inherited.store(true, std::memory_order_relaxed);
    }
  });
  static_cast<void>(registered);
  Hook& hook = g_hooks[static_cast<size_t>(detail)];
  // Somebody's clearGlobalCallbacks() takes ours too: then it is added anew.
  if (hook.handle == at::INVALID_CALLBACK_HANDLE || !at::hasGlobalCallbacks()) {
    hook.handle = at::addGlobalCallback(callback_of(hook));
  } else {
    at::reenableCallback(hook.handle);
  }
  hook.on = true;
}

void disable_op_hook() noexcept {
  for (Hook& hook : g_hooks) {
    if (hook.on) at::disableCallback(hook.handle);
    hook.on = false;
  }
}

bool hooks_are_inherited() noexcept { return g_inherited.load(std::memory_order_relaxed); }

void park_hooks_in_child() noexcept {
  if (!g_inherited.exchange(false)) return;
  disable_op_hook();
  disable_cpu_memory_hook();
}

}  // namespace firelane

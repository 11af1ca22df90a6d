#include "record/torch/op_hook.h"

#include <ATen/record_function.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <unordered_set>

#include "record/core/thread_buffer.h"
#include "record/torch/collective_args.h"
#include "record/torch/cpu_memory.h"
#include "record/torch/input_capture.h"
#include "record/torch/tensor_words.h"

namespace firelane::torch_hooks {
namespace {

// torch has its own thread numbers, and a backward op knows its forward op's thread by that number.
// Traces use system thread ids.
constexpr size_t kMaxThreads = 4096;
std::array<std::atomic<uint32_t>, kMaxThreads> g_system_ids{};
constinit thread_local bool t_is_known __attribute__((tls_model("initial-exec"))) = false;

std::atomic<bool> g_inherited{false};
Wanted g_wanted;  // set while no callback is on
// Of g_wanted. An op that began while a callback was on may come here after the next recording has begun: where there
// is something to find, there is always something to describe it.
std::atomic<decltype(record::CallLines::find)> g_find_line{nullptr};
std::atomic<decltype(record::CallLines::describe)> g_describe_line{nullptr};
// TorchScript functions that this thread is in; negative if recording began inside.
constinit thread_local int32_t t_script_depth __attribute__((tls_model("initial-exec"))) = 0;

// Ops that this thread is in and has begun while the hook was on.
constinit thread_local int32_t t_depth __attribute__((tls_model("initial-exec"))) = 0;
// Where in the Python program it called them, outermost first; beyond the array's end, the innermost one counts.
constexpr int32_t kMostPositions = 16;
constinit thread_local std::array<uint64_t, kMostPositions> t_positions __attribute__((tls_model("initial-exec"))) = {};

uint64_t& position_at(int32_t depth) noexcept {
  return t_positions[static_cast<size_t>(std::clamp(depth, 1, kMostPositions) - 1)];
}

void remember_thread(const at::RecordFunction& fn, const record::ThreadBuffer& buffer) noexcept {
  t_is_known = true;
  if (fn.threadId() < kMaxThreads) {
    g_system_ids[fn.threadId()].store(buffer.system_thread_id(), std::memory_order_relaxed);
  }
}

int64_t system_id(uint64_t torch_thread) noexcept {
  return torch_thread < kMaxThreads ? g_system_ids[torch_thread].load(std::memory_order_relaxed) : 0;
}

// The names of dispatcher ops are part of their schemas and stay: their address is their key, one per overload. All
// other names are the caller's strings, found by content. A string cannot have the address of a schema's name, so an
// address that was once a schema's needs no second look.
[[gnu::noinline]] record::TextSlot new_name(record::ThreadBuffer* b, const at::RecordFunction& fn,
                                            const char* name) noexcept {
  try {
    if (const auto op = fn.operator_name(); op.has_value()) {
      return b->define_op(reinterpret_cast<uintptr_t>(name), name, op->overload_name);
    }
  } catch (...) {  // no memory for the copy that operator_name() makes
  }
  return b->text(name);
}

inline record::TextSlot name_of(record::ThreadBuffer* b, const at::RecordFunction& fn) noexcept {
  const char* name = fn.name();
  const record::TextSlot slot = b->find(reinterpret_cast<uintptr_t>(name));
  return slot != record::kNoSlot ? slot : new_name(b, fn, name);
}

// The inputs of an op and their key; without values for hooks that do not look at them.
struct Inputs {
  c10::ArrayRef<const c10::IValue> values;
  InputValues detail = InputValues::kLeaveOut;
  uint64_t key = 0;
};

[[gnu::noinline]] record::TextSlot define_inputs(record::ThreadBuffer* b, const Inputs& inputs) noexcept {
  record::InputBlob blob;
  capture_inputs(inputs.values, inputs.detail, blob);
  return b->define_content(inputs.key, blob.bytes());
}

// After the begin, whose name may have taken the slot in between.
inline void attach_inputs(record::ThreadBuffer* b, const Inputs& inputs) noexcept {
  if (inputs.values.empty()) return;
  record::TextSlot slot = b->find_content(inputs.key);
  if (slot == record::kNoSlot) [[unlikely]]
    slot = define_inputs(b, inputs);
  b->attribute(format::Attribute::kInputs, slot);
}

[[gnu::noinline]] void attach_tensors(record::ThreadBuffer* b, const Inputs& inputs) noexcept {
  const TensorWords words(inputs.values);
  if (words.has_tensors()) b->attribute(format::Attribute::kTensors, b->text(words.bytes()));
}

// Torch numbers calls only while an observer asks for it (an execution trace).
inline void attach_call_id(record::ThreadBuffer* b, const at::RecordFunction& fn) noexcept {
  if (const uint64_t id = fn.handle(); id != 0) [[unlikely]]
    b->attribute(format::Attribute::kCallId, static_cast<int64_t>(id));
}

// The line that was found last on this thread.
[[gnu::noinline]] record::TextSlot define_line(record::ThreadBuffer* b, uint64_t line) noexcept {
  std::array<char, 2048> text;
  const auto describe = g_describe_line.load(std::memory_order_relaxed);
  return b->define_content(line, {text.data(), describe(text.data(), text.size())});
}

// The line that calls the op, defined in the stream if it is new to it; 0: none, or that of the op around it.
[[gnu::noinline]] uint64_t find_line(record::ThreadBuffer* b, decltype(record::CallLines::find) find,
                                     uint64_t& position) noexcept {
  const uint64_t line = find(position);
  if (line != 0 && b->find_content(line) == record::kNoSlot) [[unlikely]]
    define_line(b, line);
  return line;
}

// After the begin, whose name may have taken the slot in between.
inline void attach_line(record::ThreadBuffer* b, uint64_t line) noexcept {
  if (line == 0) return;
  record::TextSlot slot = b->find_content(line);
  if (slot == record::kNoSlot) [[unlikely]]
    slot = define_line(b, line);
  b->attribute(format::Attribute::kStack, slot);
}

// User ranges may end in any order and on any thread (a generator, a future): they are written as
// ranges with an id. The object's address is unique while the range is open.
[[gnu::noinline]] void begin_user_range(const at::RecordFunction& fn, const Inputs& inputs) noexcept {
  record::ThreadBuffer* b = record::recording_thread();
  if (b == nullptr) return;
  uint64_t position = 0;
  const auto find = g_find_line.load(std::memory_order_acquire);
  const uint64_t line = find == nullptr ? 0 : find_line(b, find, position);
  const record::TextSlot name = b->text(fn.name());
  b->async_begin(now_ticks(), name, format::Scope::kUser, reinterpret_cast<uintptr_t>(&fn));
  attach_line(b, line);
  attach_inputs(b, inputs);
  attach_call_id(b, fn);
}

[[gnu::noinline]] void end_user_range(const at::RecordFunction& fn, uint64_t ticks) noexcept {
  if (record::ThreadBuffer* b = record::recording_thread()) b->async_end(ticks, reinterpret_cast<uintptr_t>(&fn));
}

[[gnu::noinline]] void begin_collective(record::ThreadBuffer* b, const at::RecordFunction& fn) noexcept {
  const std::string args = collective_args(fn);
  b->begin(now_ticks(), b->text(fn.name()), static_cast<format::Scope>(fn.scope()));
  if (!args.empty()) b->attribute(format::Attribute::kExtraArgs, b->text(args));
}

[[gnu::noinline]] void begin_in_script(record::ThreadBuffer* b, const at::RecordFunction& fn) noexcept {
  if (fn.scope() == at::RecordScope::TORCHSCRIPT_FUNCTION) ++t_script_depth;
  if (g_wanted.script.lines || g_wanted.script.modules) attach_script_stack(b, g_wanted.script);
}

inline void begin_op(record::ThreadBuffer* b, const at::RecordFunction& fn) noexcept {
  if (fn.isNcclMeta()) [[unlikely]]
    return begin_collective(b, fn);
  const record::TextSlot name = name_of(b, fn);
  const auto scope = static_cast<format::Scope>(fn.scope());
  const int64_t sequence = fn.seqNr();
  if (sequence < 0) return b->begin(now_ticks(), name, scope);
  if (!t_is_known) [[unlikely]]
    remember_thread(fn, *b);
  b->begin(now_ticks(), name, scope, sequence);
  if (const uint64_t forward = fn.forwardThreadId(); forward != 0) [[unlikely]] {
    if (const int64_t id = system_id(forward); id != 0) b->attribute(format::Attribute::kForwardThread, id);
  }
}

inline void begin(record::ThreadBuffer* b, const at::RecordFunction& fn) noexcept {
  uint64_t line = 0;
  if (const auto find = g_find_line.load(std::memory_order_acquire);
      find != nullptr) {  // before the op's clock is read
    uint64_t position = t_depth > 1 ? position_at(t_depth - 1) : 0;
    line = find_line(b, find, position);
    position_at(t_depth) = position;
  }
  begin_op(b, fn);
  attach_line(b, line);
  attach_call_id(b, fn);
  if (t_script_depth > 0 || fn.scope() == at::RecordScope::TORCHSCRIPT_FUNCTION) [[unlikely]]
    begin_in_script(b, fn);
}

[[gnu::noinline]] void not_recording() noexcept {
  position_at(t_depth) = 0;
  if (g_inherited.load(std::memory_order_relaxed)) park_hooks_in_child();
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& fn) {
  if (fn.scope() == at::RecordScope::USER_SCOPE) [[unlikely]] {
    begin_user_range(fn, {});
    return nullptr;
  }
  ++t_depth;
  if (record::ThreadBuffer* b = record::recording_thread_for_begin()) [[likely]] {
    begin(b, fn);
  } else {
    not_recording();
  }
  return nullptr;
}

template <InputValues detail>
std::unique_ptr<at::ObserverContext> on_begin_with_inputs(const at::RecordFunction& fn) {
  // Work before the clock is read is the recorder's time, not the op's.
  Inputs inputs;
  if (record::is_recording()) [[likely]] {
    inputs = {.values = fn.inputs(), .detail = detail, .key = 0};
    inputs.key = key_of_inputs(inputs.values, detail);
  }
  if (fn.scope() == at::RecordScope::USER_SCOPE) [[unlikely]] {
    begin_user_range(fn, inputs);
    return nullptr;
  }
  ++t_depth;
  if (record::ThreadBuffer* b = record::recording_thread_for_begin()) [[likely]] {
    if (!inputs.values.empty() && b->find_content(inputs.key) == record::kNoSlot) [[unlikely]]
      define_inputs(b, inputs);
    begin(b, fn);
    attach_inputs(b, inputs);
    if (g_wanted.tensors) [[unlikely]]
      attach_tensors(b, inputs);
  } else {
    not_recording();
  }
  return nullptr;
}

void on_end(const at::RecordFunction& fn, at::ObserverContext*) {
  const uint64_t ticks = now_ticks();
  if (fn.scope() == at::RecordScope::USER_SCOPE) [[unlikely]] {
    return end_user_range(fn, ticks);
  }
  --t_depth;
  if (record::ThreadBuffer* b = record::recording_thread_for_end()) [[likely]]
    b->end(ticks, format::ScopeGroup::kOp);
  if (fn.scope() == at::RecordScope::TORCHSCRIPT_FUNCTION) [[unlikely]]
    --t_script_depth;
}

struct Hook {
  at::RecordFunctionCallback::StartCallback start = nullptr;
  bool needs_inputs = false;
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  bool on = false;
};

// A callback cannot change what it listens to: there is one for each kind and choice, added when it is first wanted.
enum class Choice : uint8_t { kAll, kOps, kRanges };
constexpr size_t kChoices = 3;
std::array<std::array<Hook, kChoices>, 3> make_hooks() {
  std::array<std::array<Hook, kChoices>, 3> hooks;
  hooks[0].fill({.start = on_begin});
  hooks[1].fill({.start = on_begin_with_inputs<InputValues::kLeaveOut>, .needs_inputs = true});
  hooks[2].fill({.start = on_begin_with_inputs<InputValues::kKeep>, .needs_inputs = true});
  return hooks;
}
std::array<std::array<Hook, kChoices>, 3> g_hooks = make_hooks();  // by OpDetail and Choice

template <typename Visit>
void each_hook_on(Visit&& visit) {
  for (auto& of_detail : g_hooks) {
    for (Hook& hook : of_detail) {
      if (hook.on) visit(hook);
    }
  }
}

// torch rebuilds the callbacks of every scope, twice for each node of a backward pass; the scopes that programs do not
// have (tags of selective builds, the mobile interpreter, the static runtime) are a sixth of what an empty callback
// adds to a backward pass. Ops inside those scopes are recorded.
at::RecordFunctionCallback callback_of(const Hook& hook, Choice choice) {
  using at::RecordScope;
  at::RecordFunctionCallback callback(hook.start, on_end);
  callback.needsInputs(hook.needs_inputs);
  std::unordered_set<RecordScope, std::hash<RecordScope>> scopes;
  if (choice != Choice::kRanges)
    scopes = {RecordScope::FUNCTION, RecordScope::BACKWARD_FUNCTION, RecordScope::TORCHSCRIPT_FUNCTION};
  if (choice != Choice::kOps) scopes.insert(RecordScope::USER_SCOPE);
  callback.scopes(scopes);
  return callback;
}

}  // namespace

void enable_op_hook(OpDetail detail, Wanted wanted) {
  g_wanted = wanted;
  if (wanted.lines.find != nullptr) g_describe_line.store(wanted.lines.describe, std::memory_order_relaxed);
  g_find_line.store(wanted.lines.find, std::memory_order_release);
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] {
    t_is_known = false;
    t_script_depth = 0;
    t_depth = 0;
    each_hook_on([](const Hook&) { g_inherited.store(true, std::memory_order_relaxed); });
  });
  static_cast<void>(registered);
  if (!wanted.ops && !wanted.ranges) return;
  const Choice choice = !wanted.ops ? Choice::kRanges : !wanted.ranges ? Choice::kOps : Choice::kAll;
  Hook& hook = g_hooks[static_cast<size_t>(detail)][static_cast<size_t>(choice)];
  // clearGlobalCallbacks() removes ours, too: then it is added again.
  if (hook.handle == at::INVALID_CALLBACK_HANDLE || !at::hasGlobalCallbacks()) {
    hook.handle = at::addGlobalCallback(callback_of(hook, choice));
  } else {
    at::reenableCallback(hook.handle);
  }
  hook.on = true;
}

void disable_op_hook() noexcept {
  each_hook_on([](Hook& hook) {
    at::disableCallback(hook.handle);
    hook.on = false;
  });
}

bool hooks_are_inherited() noexcept { return g_inherited.load(std::memory_order_relaxed); }

void park_hooks_in_child() noexcept {
  if (!g_inherited.exchange(false)) return;
  disable_op_hook();
  disable_cpu_memory_hook();
}

}  // namespace firelane::torch_hooks

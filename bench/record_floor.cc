// The floor of every recorder of ops: a global RecordFunction callback that does nothing. bench/record.py loads this
// with ctypes and switches it.
#include <ATen/record_function.h>

#include <memory>

namespace {

std::unique_ptr<at::ObserverContext> nothing(const at::RecordFunction&) { return nullptr; }
void nothing_more(const at::RecordFunction&, at::ObserverContext*) {}

at::CallbackHandle& handle_of(bool needs_inputs) {
  static at::CallbackHandle handles[2] = {at::INVALID_CALLBACK_HANDLE, at::INVALID_CALLBACK_HANDLE};
  return handles[needs_inputs ? 1 : 0];
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] void floor_on(int needs_inputs) {
  at::CallbackHandle& handle = handle_of(needs_inputs != 0);
  if (handle != at::INVALID_CALLBACK_HANDLE) return at::reenableCallback(handle);
  handle = at::addGlobalCallback(at::RecordFunctionCallback(nothing, nothing_more).needsInputs(needs_inputs != 0));
}

[[gnu::visibility("default")]] void floor_off(int needs_inputs) { at::disableCallback(handle_of(needs_inputs != 0)); }

}  // extern "C"

#include "record/torch/script_stack.h"

#include <torch/csrc/jit/frontend/source_range.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <string>

namespace firelane::torch_hooks {
namespace {

// "train.py(12): forward;train.py(30): step;", innermost first. As in Kineto's traces, each entry ends with its mark.
std::string lines() {
  std::string text;
  for (const auto& entry : torch::jit::currentCallstack()) {
    const auto& source = entry.range.source();
    if (!source || !source->filename()) continue;
    const size_t line = source->starting_line_no() + source->lineno_for_offset(entry.range.start());
    text += *source->filename() + "(" + std::to_string(line) + "): " + entry.filename + ";";
  }
  return text;
}

std::string modules() {
  std::string text;
  for (const std::string& module : torch::jit::currentModuleHierarchy()) text += module + ".";
  return text;
}

}  // namespace

void attach_script_stack(record::ThreadBuffer* b, ScriptDetail detail) noexcept {
  try {
    if (const std::string text = detail.lines ? lines() : ""; !text.empty())
      b->attribute(format::Attribute::kStack, b->text(text));
    if (const std::string text = detail.modules ? modules() : ""; !text.empty())
      b->attribute(format::Attribute::kModules, b->text(text));
  } catch (...) {  // no memory, or a program without debug information
  }
}

}  // namespace firelane::torch_hooks

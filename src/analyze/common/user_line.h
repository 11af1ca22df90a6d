// The line of the user's own code in a call stack.
#pragma once

#include <string>
#include <string_view>

#include "model/module_call.h"

namespace firelane::analyze {

// Whether the file lies in torch: found through sys.path, installed, or in a checkout of it.
inline bool is_of_torch(std::string_view frame) {
  if (frame.starts_with("torch/") || frame.find("-packages/torch/") != std::string_view::npos) return true;
  for (const std::string_view part : {"/torch/nn/", "/torch/_", "/torch/autograd/", "/torch/optim/", "/torch/utils/"}) {
    if (frame.find(part) != std::string_view::npos) return true;
  }
  return false;
}

inline bool is_of_packages(std::string_view frame) {
  return frame.find("site-packages/") != std::string_view::npos ||
         frame.find("dist-packages/") != std::string_view::npos;
}

// Functions of libraries say less than those that call them.
inline bool is_of_libraries(std::string_view frame) {
  if (frame.starts_with("<")) return true;  // <built-in method ...>, <string>
  if (is_of_torch(frame) || is_of_packages(frame)) return true;
  for (const std::string_view part :
       {std::string_view("lib/python"), std::string_view("threading.py("), std::string_view("contextlib.py("),
        kNumberedModule, std::string_view("runpy.py(")}) {
    if (frame.find(part) != std::string_view::npos) return true;
  }
  return frame.find(".py(") == std::string_view::npos;
}

// "/home/me/train.py(41): step" -> "train.py(41): step".
inline std::string_view without_folder(std::string_view frame) {
  const size_t slash = frame.rfind('/', frame.find(".py("));
  return slash == std::string_view::npos ? frame : frame.substr(slash + 1);
}

// For a stack with its innermost frame first, joined by ";": the innermost frame that is no library's; "" when all are.
inline std::string user_line(std::string_view stack) {
  while (!stack.empty()) {
    const size_t end = stack.find(';');
    const std::string_view frame = stack.substr(0, end);
    if (!is_of_libraries(frame)) return std::string(without_folder(frame));
    if (end == std::string_view::npos) break;
    stack.remove_prefix(end + 1);
  }
  return "";
}

}  // namespace firelane::analyze

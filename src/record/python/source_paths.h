// Whose a source file is, and how its path is shown.
//
// Read once for a run, with the GIL, from sys.path and the folders of torch, of Python's own library and of this
// package. What was read stays as it is for ever, so that hooks look at it without the GIL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace firelane::python_hooks {

enum class SourceOwner : uint8_t {
  kInternal,  // torch, Python's own library, this package, compiled code: who called it says more
  kLibrary,   // installed packages
  kProgram,
};

class SourcePaths {
 public:
  // With the GIL, before the first of the others: what sys.path is now. Leaves no exception set.
  static void refresh() noexcept;
  // Never null after refresh().
  static const SourcePaths* current() noexcept;

  SourceOwner owner_of(std::string_view path) const noexcept;
  // "torch/nn/modules/module.py": without the entry of sys.path that it was found through.
  std::string_view shortened(std::string_view path) const noexcept;

  bool operator==(const SourcePaths&) const = default;

 private:
  std::vector<std::string> prefixes_;  // longest first
  std::vector<std::string> internal_;  // folders
  std::string standard_library_;
};

}  // namespace firelane::python_hooks

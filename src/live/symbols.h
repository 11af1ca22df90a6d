// Names of native functions by their address in another process: from the symbols of the files that it has mapped.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "live/elf.h"
#include "live/mapped_file.h"
#include "live/process.h"

namespace firelane::live {

struct NativeFunction {
  std::string name;        // without parameters: "at::native::add_kernel"; kUnknownFunction where the file names none
  std::string library;     // "libtorch_cpu.so"; "" if the address lies in no file: code made at run time
  bool is_python = false;  // in the interpreter's file
  bool is_interpreter = false;  // Python's evaluation loop: one call of it runs some Python frames
};

inline constexpr std::string_view kUnknownFunction = "[unknown]";

// As people write it: demangled, without parameters.
std::string readable_name(std::string_view mangled);

class Symbols {
 public:
  // `python_image`: the path of the interpreter's file.
  Symbols(const Process& process, std::string python_image);

  // Whether the address lies in a file whose code is known to be mapped there.
  bool has(uint64_t address) const { return code_at(address) != nullptr; }

  NativeFunction function_at(uint64_t address);

 private:
  struct Image {
    std::unique_ptr<MappedFile> file;
    std::vector<ElfFunction> functions;
    std::vector<ElfSegment> segments;
  };

  const Mapping* code_at(uint64_t address) const;
  const Image& image_of(const std::string& path);

  Process process_;
  std::string python_image_;
  std::map<std::string, Image> images_;  // read when first asked for
};

}  // namespace firelane::live

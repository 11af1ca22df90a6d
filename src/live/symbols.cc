#include "live/symbols.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace firelane::live {

namespace {

constexpr std::string_view kInterpreter = "_PyEval_EvalFrameDefault";

// Where the parameters begin in a demangled name; its size if it has none. The last group of parentheses, unless that
// is a part of the name: "(anonymous namespace)" or "operator()".
size_t end_of_name(std::string_view name) {
  const size_t close = name.rfind(')');
  if (close == std::string_view::npos) return name.size();
  const std::string_view rest = name.substr(close + 1);
  if (!rest.empty() && rest[0] != ' ' && rest[0] != '[') return name.size();  // "(anonymous namespace)::f"
  size_t depth = 0;
  for (size_t at = close + 1; at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) return at == 0 || name.substr(0, at).ends_with("operator") ? name.size() : at;
  }
  return name.size();
}

}  // namespace

std::string readable_name(std::string_view mangled) {
  const std::string text(mangled);
  int failed = 0;
  char* demangled = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &failed);
  if (failed != 0 || demangled == nullptr) return text;
  std::string out(demangled);
  std::free(demangled);
  out.resize(end_of_name(out));
  return out;
}

Symbols::Symbols(const Process& process, std::string python_image)
    : process_(process), python_image_(std::move(python_image)) {}

const Mapping* Symbols::code_at(uint64_t address) const {
  const auto& mappings = process_.mappings;
  auto found = std::upper_bound(mappings.begin(), mappings.end(), address,
                                [](uint64_t at, const Mapping& mapping) { return at < mapping.start; });
  if (found == mappings.begin()) return nullptr;
  --found;
  return address < found->end && found->is_code ? &*found : nullptr;
}

const Symbols::Image& Symbols::image_of(const std::string& path) {
  const auto [found, is_new] = images_.try_emplace(path);
  Image& image = found->second;
  if (is_new) {
    image.file = std::make_unique<MappedFile>(process_.readable_path(path));
    image.functions = functions_of(image.file->bytes());
    image.segments = segments_of(image.file->bytes());
  }
  return image;
}

NativeFunction Symbols::function_at(uint64_t address) {
  NativeFunction out{.name = std::string(kUnknownFunction)};
  const Mapping* mapping = code_at(address);
  if (mapping == nullptr) return out;
  out.library = mapping->path.substr(mapping->path.rfind('/') + 1);
  out.is_python = mapping->path == python_image_;
  const Image& image = image_of(mapping->path);
  const uint64_t offset = address - mapping->start + mapping->file_offset;
  const auto segment = std::find_if(image.segments.begin(), image.segments.end(), [&](const ElfSegment& each) {
    return offset >= each.file_offset && offset - each.file_offset < each.bytes;
  });
  if (segment == image.segments.end()) return out;
  const uint64_t at = offset - segment->file_offset + segment->address;
  auto after = std::upper_bound(image.functions.begin(), image.functions.end(), at,
                                [](uint64_t value, const ElfFunction& each) { return value < each.address; });
  // Among names for the same place, the first that reaches so far. One without a size reaches to the next.
  const ElfFunction* found = nullptr;
  while (after != image.functions.begin()) {
    --after;
    if (found != nullptr && after->address != found->address) break;
    if (at - after->address < after->size || (after->size == 0 && found == nullptr)) found = &*after;
    if (found == nullptr) break;
  }
  if (found == nullptr) return out;
  out.name = readable_name(found->name);
  out.is_interpreter = out.is_python && found->name.starts_with(kInterpreter);
  return out;
}

}  // namespace firelane::live

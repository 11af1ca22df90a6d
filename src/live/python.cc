#include "live/python.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "live/elf.h"

namespace firelane::live {

namespace {

// "11" or "13t" at the beginning of `text`.
std::optional<PythonVersion> version_at(std::string_view text) {
  PythonVersion out;
  size_t digits = 0;
  while (digits < text.size() && digits < 3 && std::isdigit(static_cast<unsigned char>(text[digits])) != 0)
    out.minor = out.minor * 10 + (text[digits++] - '0');
  if (digits == 0 || digits == 3) return std::nullopt;
  out.is_free_threaded = digits < text.size() && text[digits] == 't';
  return out;
}

}  // namespace

std::optional<PythonVersion> version_in(std::string_view path) {
  for (const std::string_view before : {".cpython-3", "libpython3.", "/python3."}) {
    const size_t at = path.rfind(before);
    if (at == std::string_view::npos) continue;
    if (const auto version = version_at(path.substr(at + before.size()))) return version;
  }
  return std::nullopt;
}

bool has_torch(const Process& process) {
  return std::any_of(process.mappings.begin(), process.mappings.end(),
                     [](const Mapping& each) { return each.path.find("/torch/_C.") != std::string::npos; });
}

Result<Python> find_python(const Process& process) {
  Python out;
  const Mapping* library = process.find_file("libpython3");
  out.image = library != nullptr ? library->path : process.program;
  std::optional<PythonVersion> version = library != nullptr ? version_in(library->path) : std::nullopt;
  // Extension modules say it, where neither the library nor the program does.
  for (const Mapping& mapping : process.mappings) {
    if (!version && mapping.path.find(".cpython-3") != std::string::npos) version = version_in(mapping.path);
  }
  if (!version) version = version_in(process.program);
  static constexpr std::array<std::string_view, 1> kRuntime = {"_PyRuntime"};
  const auto found = symbol_addresses(process, out.image, kRuntime);
  if (!version || !found.ok() || found.value()[0] == 0)
    return Error{std::to_string(process.pid) + ": not a Python 3 program (" + process.program + ")"};
  out.version = *version;
  return out;
}

Result<std::vector<uint64_t>> python_addresses(const Process& process, const Python& python,
                                               std::span<const std::string_view> names) {
  FL_TRY(std::vector<uint64_t> out, symbol_addresses(process, python.image, names));
  for (size_t i = 0; i < names.size(); ++i) {
    if (out[i] == 0) return Error{python.image + ": does not export " + std::string(names[i])};
  }
  return out;
}

}  // namespace firelane::live

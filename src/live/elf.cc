#include "live/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "live/mapped_file.h"
#include "live/memory.h"

namespace firelane::live {

namespace {

// The T at `offset`, copied: files align nothing that they do not want to.
template <typename T>
std::optional<T> read_at(std::span<const uint8_t> file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, file.data() + offset, sizeof(T));
  return out;
}

std::string_view text_at(std::span<const uint8_t> file, const Elf64_Shdr& strings, uint64_t at) {
  if (at >= strings.sh_size || strings.sh_offset > file.size() || file.size() - strings.sh_offset < strings.sh_size)
    return {};
  const auto* begin = reinterpret_cast<const char*>(file.data() + strings.sh_offset + at);
  return {begin, ::strnlen(begin, strings.sh_size - at)};
}

// As many symbols as fit into a file: many sections of a hostile one may be the same bytes.
uint64_t most_symbols(std::span<const uint8_t> file) { return file.size() / sizeof(Elf64_Sym); }

// Calls visit(symbol, name) for the symbols of all tables of a kind, and takes their number from `left`, where it ends;
// false if the file is shorter than it says.
template <typename Visit>
bool each_symbol(std::span<const uint8_t> file, const Elf64_Ehdr& header, uint32_t kind, uint64_t& left, Visit visit) {
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return false;
    if (section->sh_type != kind) continue;
    const auto strings = read_at<Elf64_Shdr>(file, header.e_shoff + section->sh_link * sizeof(Elf64_Shdr));
    if (!strings) continue;
    const uint64_t count = std::min<uint64_t>(section->sh_size / sizeof(Elf64_Sym), left);
    left -= count;
    for (uint64_t s = 0; s < count; ++s) {
      const auto symbol = read_at<Elf64_Sym>(file, section->sh_offset + s * sizeof(Elf64_Sym));
      if (!symbol) break;
      if (symbol->st_shndx != SHN_UNDEF) visit(*symbol, text_at(file, *strings, symbol->st_name));
    }
  }
  return true;
}

std::optional<Elf64_Ehdr> header_of(std::span<const uint8_t> file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  const bool is_elf =
      header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64;
  return is_elf ? header : std::nullopt;
}

}  // namespace

Result<std::vector<uint64_t>> symbol_values(std::span<const uint8_t> file, std::span<const std::string_view> names) {
  const auto header = header_of(file);
  if (!header) return Error{"not a 64-bit ELF file"};
  uint64_t lowest = std::numeric_limits<uint64_t>::max();
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return Error{"a cut ELF file"};
    if (segment->p_type == PT_LOAD) lowest = std::min(lowest, segment->p_vaddr / kPageSize * kPageSize);
  }
  std::vector<uint64_t> out(names.size(), 0);
  uint64_t left = most_symbols(file);
  // Those for the linker are few; the others are only there if nobody has stripped the file.
  for (const uint32_t kind : {uint32_t{SHT_DYNSYM}, uint32_t{SHT_SYMTAB}}) {
    if (std::find(out.begin(), out.end(), uint64_t{0}) == out.end()) break;
    const bool is_whole = each_symbol(file, *header, kind, left, [&](const Elf64_Sym& symbol, std::string_view text) {
      const auto name = std::find(names.begin(), names.end(), text);
      if (name == names.end() || name->empty() || symbol.st_value < lowest) return;
      out[static_cast<size_t>(name - names.begin())] = symbol.st_value - lowest;
    });
    if (!is_whole) return Error{"a cut ELF file"};
  }
  return out;
}

Result<std::vector<uint64_t>> symbol_addresses(const Process& process, const std::string& path,
                                               std::span<const std::string_view> names) {
  const auto mapping = std::find_if(process.mappings.begin(), process.mappings.end(),
                                    [&](const Mapping& each) { return each.path == path && each.file_offset == 0; });
  if (mapping == process.mappings.end()) return Error{path + ": not mapped"};
  const MappedFile file(process.readable_path(path));
  if (file.bytes().empty()) return Error{path + ": cannot be read"};
  auto values = symbol_values(file.bytes(), names);
  if (!values.ok()) return Error{path + ": " + values.error().message};
  std::vector<uint64_t> out = std::move(values).value();
  for (uint64_t& value : out) value = value == 0 ? 0 : value + mapping->start;
  return out;
}

std::vector<ElfFunction> functions_of(std::span<const uint8_t> file) {
  std::vector<ElfFunction> out;
  const auto header = header_of(file);
  if (!header) return out;
  uint64_t left = most_symbols(file);
  for (const uint32_t kind : {uint32_t{SHT_SYMTAB}, uint32_t{SHT_DYNSYM}}) {
    (void)each_symbol(file, *header, kind, left, [&](const Elf64_Sym& symbol, std::string_view name) {
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if ((type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_value != 0 && !name.empty())
        out.push_back({symbol.st_value, symbol.st_size, name});
    });
  }
  std::sort(out.begin(), out.end(), [](const ElfFunction& a, const ElfFunction& b) {
    return std::tie(a.address, a.name) < std::tie(b.address, b.name);
  });
  return out;
}

std::vector<ElfSegment> segments_of(std::span<const uint8_t> file) {
  std::vector<ElfSegment> out;
  const auto header = header_of(file);
  for (uint64_t i = 0; header && i < header->e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) break;
    if (segment->p_type == PT_LOAD) out.push_back({segment->p_offset, segment->p_vaddr, segment->p_filesz});
  }
  return out;
}

Result<std::string> c_library(const Process& process) {
  for (const std::string_view name : {"libc.so", "libc-", "ld-musl"}) {
    if (const Mapping* found = process.find_file(name)) return found->path;
  }
  return Error{std::to_string(process.pid) + ": uses an unknown C library"};
}

}  // namespace firelane::live

#include "live/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

namespace firelane::live {

namespace {

constexpr uint64_t kPageSize = 4096;

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

// Not read as a whole: libraries are large, and their symbol tables a small part of them.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (file >= 0 && ::fstat(file, &status) == 0 && status.st_size > 0) {
      size_ = static_cast<size_t>(status.st_size);
      data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) ::close(file);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (data_ != MAP_FAILED) ::munmap(data_, size_);
  }

  std::span<const uint8_t> bytes() const {
    if (data_ == MAP_FAILED) return {};
    return {static_cast<const uint8_t*>(data_), size_};
  }

 private:
  void* data_ = MAP_FAILED;
  size_t size_ = 0;
};

// The symbols of all tables of a kind; false if the file is shorter than it says.
bool add_values(std::span<const uint8_t> file, const Elf64_Ehdr& header, uint32_t kind, uint64_t lowest,
                std::span<const std::string_view> names, std::vector<uint64_t>& out) {
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return false;
    if (section->sh_type != kind) continue;
    const auto strings = read_at<Elf64_Shdr>(file, header.e_shoff + section->sh_link * sizeof(Elf64_Shdr));
    if (!strings) continue;
    const uint64_t count = std::min<uint64_t>(section->sh_size, file.size()) / sizeof(Elf64_Sym);
    for (uint64_t s = 0; s < count; ++s) {
      const auto symbol = read_at<Elf64_Sym>(file, section->sh_offset + s * sizeof(Elf64_Sym));
      if (!symbol) break;
      if (symbol->st_shndx == SHN_UNDEF || symbol->st_value < lowest) continue;
      const auto name = std::find(names.begin(), names.end(), text_at(file, *strings, symbol->st_name));
      if (name == names.end() || name->empty()) continue;
      out[static_cast<size_t>(name - names.begin())] = symbol->st_value - lowest;
    }
  }
  return true;
}

}  // namespace

Result<std::vector<uint64_t>> symbol_values(std::span<const uint8_t> file, std::span<const std::string_view> names) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
    return Error{"not a 64-bit ELF file"};
  uint64_t lowest = std::numeric_limits<uint64_t>::max();
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return Error{"a cut ELF file"};
    if (segment->p_type == PT_LOAD) lowest = std::min(lowest, segment->p_vaddr / kPageSize * kPageSize);
  }
  std::vector<uint64_t> out(names.size(), 0);
  // Those for the linker are few; the others are only there if nobody has stripped the file.
  for (const uint32_t kind : {uint32_t{SHT_DYNSYM}, uint32_t{SHT_SYMTAB}}) {
    if (std::find(out.begin(), out.end(), uint64_t{0}) == out.end()) break;
    if (!add_values(file, *header, kind, lowest, names, out)) return Error{"a cut ELF file"};
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

Result<std::string> c_library(const Process& process) {
  for (const std::string_view name : {"libc.so", "libc-", "ld-musl"}) {
    if (const Mapping* found = process.find_file(name)) return found->path;
  }
  return Error{std::to_string(process.pid) + ": has no C library that is known"};
}

}  // namespace firelane::live

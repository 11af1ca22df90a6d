// What is known of other processes, on this one and on files made here.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "live/elf.h"
#include "live/inject.h"
#include "live/layout.h"
#include "live/line_table.h"
#include "live/mapped_file.h"
#include "live/memory.h"
#include "live/process.h"
#include "live/python.h"
#include "live/thread_clock.h"

namespace firelane::live {
namespace {

TEST(LookAt, KnowsThisProcess) {
  const auto process = look_at(::getpid());
  ASSERT_TRUE(process.ok()) << process.error().message;
  EXPECT_EQ(process.value().user, ::geteuid());
  EXPECT_NE(process.value().command.find("test"), std::string::npos);
  EXPECT_NE(process.value().find_file("libc"), nullptr);
  EXPECT_TRUE(shares_files(::getpid()));
}

TEST(LookAt, RefusesWhatIsNoProgram) {
  EXPECT_EQ(look_at(0).error().message, "0: no such process");
  EXPECT_EQ(look_at(1 << 30).error().message, std::to_string(1 << 30) + ": no such process");
  if (const std::string kernel = read_proc(2, "comm"); kernel == "kthreadd\n")
    EXPECT_EQ(look_at(2).error().message, "2: a thread of the kernel, not a program");
}

TEST(FindPython, RefusesAProgramThatIsNone) {
  const auto process = look_at(::getpid());
  ASSERT_TRUE(process.ok());
  const auto python = find_python(process.value());
  ASSERT_FALSE(python.ok());
  EXPECT_NE(python.error().message.find("not a Python 3 program"), std::string::npos);
}

TEST(VersionIn, ReadsNamesOfModulesLibrariesAndFolders) {
  EXPECT_EQ(version_in("/x/torch/_C.cpython-311-x86_64-linux-gnu.so")->text(), "3.11");
  EXPECT_EQ(version_in("/x/torch/_C.cpython-313t-x86_64-linux-gnu.so")->tag(), "cpython-313t");
  EXPECT_EQ(version_in("/usr/lib/libpython3.10.so.1.0")->minor, 10);
  EXPECT_EQ(version_in("/usr/bin/python3.9")->minor, 9);
  EXPECT_FALSE(version_in("/usr/bin/python3").has_value());
  EXPECT_FALSE(version_in("/usr/bin/bash").has_value());
}

TEST(SymbolAddresses, AreThoseThatTheProcessHasItself) {
  const auto process = look_at(::getpid());
  ASSERT_TRUE(process.ok());
  const Mapping* libc = process.value().find_file("libc.so");
  if (libc == nullptr) GTEST_SKIP() << "the C library has another name here";
  static constexpr std::array<std::string_view, 2> kNames = {"getpid", "no_such_symbol"};
  const auto found = symbol_addresses(process.value(), libc->path, kNames);
  ASSERT_TRUE(found.ok()) << found.error().message;
  pid_t (*get)() = nullptr;
  std::memcpy(&get, &found.value()[0], sizeof(get));
  EXPECT_EQ(get(), ::getpid());
  EXPECT_EQ(found.value()[1], 0u);
}

TEST(SymbolValues, RefuseWhatIsNotElfAndSurviveACutFile) {
  static constexpr std::array<std::string_view, 1> kNames = {"main"};
  const std::array<uint8_t, 4> text = {'#', '!', '/', 'b'};
  EXPECT_FALSE(symbol_values(text, kNames).ok());
  std::ifstream in("/proc/self/exe", std::ios::binary);
  std::vector<char> bytes(1 << 16);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  for (const size_t size : {size_t{0}, size_t{16}, sizeof(Elf64_Ehdr), size_t{4096}, bytes.size()}) {
    // Whatever it answers, it reads nothing beyond the end (the sanitizers' build checks that).
    (void)symbol_values({reinterpret_cast<const uint8_t*>(bytes.data()), size}, kNames);
  }
  Elf64_Ehdr header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.e_shoff = ~uint64_t{0} - 100;
  std::memcpy(bytes.data(), &header, sizeof(header));
  EXPECT_FALSE(symbol_values({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, kNames).ok());
}

TEST(FunctionsOf, AFileWhoseTablesAreTheSameBytesHasNoMoreThanFitsIntoIt) {
  constexpr size_t kSections = 1000;
  constexpr size_t kSymbols = 1000;
  Elf64_Ehdr header{.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64}};
  header.e_shoff = sizeof(header);
  header.e_shnum = kSections;
  const size_t symbols_at = sizeof(header) + kSections * sizeof(Elf64_Shdr);
  const size_t names_at = symbols_at + kSymbols * sizeof(Elf64_Sym);
  std::vector<uint8_t> file(names_at + 3);
  std::memcpy(file.data(), &header, sizeof(header));
  Elf64_Shdr section{.sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = 3};
  std::memcpy(file.data() + header.e_shoff, &section, sizeof(section));
  section = {.sh_type = SHT_SYMTAB, .sh_offset = symbols_at, .sh_size = kSymbols * sizeof(Elf64_Sym), .sh_link = 0};
  for (size_t i = 1; i < kSections; ++i)
    std::memcpy(file.data() + header.e_shoff + i * sizeof(section), &section, sizeof(section));
  const Elf64_Sym symbol{.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 64};
  for (size_t i = 0; i < kSymbols; ++i)
    std::memcpy(file.data() + symbols_at + i * sizeof(symbol), &symbol, sizeof(symbol));
  file[names_at + 1] = 'f';
  const std::vector<ElfFunction> found = functions_of(file);
  ASSERT_GE(found.size(), kSymbols);
  EXPECT_EQ(found[0].name, "f");
  EXPECT_LE(found.size(), file.size() / sizeof(Elf64_Sym));
}

TEST(MappedFile, DoesNotWaitForAPipe) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("firelane-pipe-" + std::to_string(::getpid()))).string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(MappedFile(path).bytes().empty());
  ::unlink(path.c_str());
}

TEST(LookAt, KnowsWhichMappingsAreCode) {
  const auto process = look_at(::getpid());
  ASSERT_TRUE(process.ok());
  static const int kData = 1;
  const auto is_code = [&](uint64_t address) {
    return std::ranges::any_of(process.value().mappings, [&](const Mapping& each) {
      return each.start <= address && address < each.end && each.is_code;
    });
  };
  EXPECT_TRUE(is_code(reinterpret_cast<uint64_t>(&look_at)));
  EXPECT_FALSE(is_code(reinterpret_cast<uint64_t>(&kData)));
}

TEST(LineTable, LocationsOf311AndLater) {
  // Short; one line further, two instructions; long, +5; none; without columns, -3.
  const std::array<uint8_t, 13> table = {0x80, 0x00, 0xD9, 0x00, 0x00, 0xF0, 0x0A, 0x00, 0x00, 0x00, 0xF8, 0xE8, 0x07};
  const std::vector<LineRange> ranges = lines_of(table, 10, true);
  EXPECT_EQ(line_at(ranges, 0, 10), 10);
  EXPECT_EQ(line_at(ranges, 2, 10), 11);
  EXPECT_EQ(line_at(ranges, 4, 10), 11);
  EXPECT_EQ(line_at(ranges, 6, 10), 16);
  EXPECT_EQ(line_at(ranges, 8, 10), 10);  // none: the function's first
  EXPECT_EQ(line_at(ranges, 10, 10), 13);
  EXPECT_EQ(line_at(ranges, 1000, 10), 10);
}

TEST(LineTable, PairsOf310) {
  const std::array<uint8_t, 8> table = {4, 1, 2, 0x80, 6, 0xFE, 2, 5};  // +1; none; -2; +5
  const std::vector<LineRange> ranges = lines_of(table, 10, false);
  EXPECT_EQ(line_at(ranges, 2, 10), 11);
  EXPECT_EQ(line_at(ranges, 4, 10), 10);
  EXPECT_EQ(line_at(ranges, 6, 10), 9);
  EXPECT_EQ(line_at(ranges, 12, 10), 14);
}

TEST(LineTable, AnyBytesAreAnswered) {
  std::vector<uint8_t> bytes;
  for (uint32_t i = 0; i < 4096; ++i) bytes.push_back(static_cast<uint8_t>(i * 2654435761u >> 13));
  for (const bool is_location_table : {false, true}) {
    const std::vector<LineRange> ranges = lines_of(bytes, INT32_MAX, is_location_table);
    EXPECT_NE(line_at(ranges, 100, 7), INT32_MIN);
  }
}

TEST(Memory, ReadsWhatIsThereAndNamesWhatIsNot) {
  const std::array<uint64_t, 3> there = {1, 2, 3};
  std::array<uint64_t, 3> into{};
  Memory memory(::getpid());
  memory.add(reinterpret_cast<uint64_t>(&there[0]), &into[0], 8);
  memory.add(8, &into[1], 8);  // nothing is at this address
  memory.add(reinterpret_cast<uint64_t>(&there[2]), &into[2], 8);
  EXPECT_EQ(memory.read_all(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(into, (std::array<uint64_t, 3>{1, 0, 3}));
  for (size_t i = 0; i < 3000; ++i) memory.add(reinterpret_cast<uint64_t>(&there[0]), &into[0], 8);
  EXPECT_EQ(memory.read_all(), std::vector<bool>(3000, true));
  EXPECT_FALSE(memory.read<uint64_t>(8).has_value());
}

TEST(ThreadClock, CountsTheTimeOfAThreadThatRunsAndNotOfOneThatIsNotThere) {
  ThreadClock nobody(::getpid(), 0);
  EXPECT_FALSE(nobody.is_known());
  EXPECT_FALSE(nobody.was_on_cpu(1'000'000, true));
  ThreadClock own(::getpid(), ::getpid());
  own.was_on_cpu(1, true);
  if (!own.is_known()) GTEST_SKIP() << "this kernel keeps no schedstat";
  bool was_on_cpu = false;
  for (int64_t i = 0; i < 1'000'000'000 && !was_on_cpu; ++i) was_on_cpu = own.was_on_cpu(1000, true);
  EXPECT_TRUE(was_on_cpu);
}

TEST(ThreadClock, KnowsMoreThreadsThanThisProcessMayHaveFilesOpen) {
  ThreadClock own(::getpid(), ::getpid());
  own.was_on_cpu(1, true);
  if (!own.is_known()) GTEST_SKIP() << "this kernel keeps no schedstat";
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<ThreadClock> clocks;
  for (int i = 0; i < 100; ++i) clocks.emplace_back(::getpid(), ::getpid());
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (ThreadClock& clock : clocks) clock.was_on_cpu(1, true);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_GE(file, 0) << "the clocks left no file to others";
  ::close(file);
  for (const ThreadClock& clock : clocks) EXPECT_TRUE(clock.is_known());
}

TEST(Layout, FreeThreadedAndUnknownVersionsHaveNone) {
  EXPECT_NE(layout_of({.minor = 12}), nullptr);
  EXPECT_NE(layout_of({.minor = 14}), nullptr);
  EXPECT_EQ(layout_of({.minor = 13, .is_free_threaded = true}), nullptr);
  EXPECT_EQ(layout_of({.minor = 9}), nullptr);
  EXPECT_EQ(layout_of({.minor = 14, .is_free_threaded = true}), nullptr);
  EXPECT_EQ(layout_of({.minor = 15}), nullptr);
}

TEST(GdbScript, WhatGdbComplainsOfIsNamedAndNotTheLineOfTheScript) {
  EXPECT_EQ(
      complaint_of("[New LWP 7]\n/proc/self/fd/4:7: Error in sourced command file:\nCouldn't write extended state "
                   "status: Bad address.\n[Inferior 1 (process 7) detached]\n"),
      "Couldn't write extended state status: Bad address.");
  EXPECT_EQ(complaint_of("ptrace: Operation not permitted.\nNo symbol table.\n"), "ptrace: Operation not permitted.");
  EXPECT_EQ(complaint_of("Traceback:\nRuntimeError: remote debugging is off\n"),
            "RuntimeError: remote debugging is off");
  EXPECT_EQ(complaint_of(""), "no answer");
}

TEST(GdbScript, NothingInTheCodeCanEndItsString) {
  const std::string script = gdb_script(0x10, 0x20, 0x30, "print(\"%s\\\")\n@PAGE@");
  EXPECT_EQ(script.find("print(\""), std::string::npos);
  EXPECT_NE(script.find("%020lu"), std::string::npos);
  EXPECT_NE(script.find("0x20)(0x30, $page)"), std::string::npos);
}

}  // namespace
}  // namespace firelane::live

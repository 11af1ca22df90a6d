// Files on disks that become full (a tmpfs of 128 KiB in a mount namespace of the test's own, where the system allows
// that), and files of killed programs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "format/chunk.h"

namespace firelane::format {
namespace {

constexpr int kCannotMount = 77;
constexpr int kOk = 0;

// What `body` returns in a child whose `folder` is a disk of 128 KiB.
int on_small_disk(const std::function<int(const std::string& folder)>& body) {
  std::string folder = ::testing::TempDir() + "firelane-disk-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return kCannotMount;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool alone = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!alone || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", folder.c_str(), "tmpfs", 0, "size=128k") != 0) {
      ::_exit(kCannotMount);
    }
    ::_exit(body(folder));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::rmdir(folder.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void fill(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  char byte = 'x';
  while (::write(fd, &byte, 1) == 1) {
  }
  ::close(fd);
}

// Records until another program has taken the rest of the disk; then ends with a reason. 0, or the line that failed.
#define MUST(condition) \
  if (!(condition)) return __LINE__ % 256
int record_until_full(const std::string& folder) {
  std::string error;
  auto sink = open_file_sink(folder + "/run.lane", error);
  MUST(sink != nullptr);
  ChunkWriter writer(*sink, 1);
  MUST(writer.write_header(1).empty());
  for (int i = 0; i < 20; ++i) MUST(writer.write_chunk(ChunkKind::kEvents, "events " + std::to_string(i)).empty());
  fill(folder + "/neighbour");
  while (error.empty()) error = writer.write_chunk(ChunkKind::kEvents, std::string(100, 'e'));
  MUST(error == "No space left on device");
  MUST(writer.write_last_notes("reason").empty());
  MUST(writer.finish(0).empty());
  sink->close();

  const std::string file = content_of(folder + "/run.lane");
  MUST(file.size() == writer.bytes_written());
  ChunkReader reader(file);
  MUST(reader.read_header("run.lane").ok());
  Chunk chunk;
  int events = 0;
  bool told = false;
  while (reader.next(chunk)) {
    events += chunk.kind == ChunkKind::kEvents;
    told |= chunk.kind == ChunkKind::kNotes && chunk.payload == "reason";
  }
  MUST(events >= 20);
  MUST(told);
  MUST(reader.clean_end());
  return kOk;
}

TEST(FullDisk, the_reason_fits_when_a_neighbour_has_taken_the_rest) {
  const int result = on_small_disk(record_until_full);
  if (result == kCannotMount) GTEST_SKIP() << "needs a mount namespace";
  EXPECT_EQ(result, kOk) << "line " << result << " of this file";
}

TEST(Kill, leaves_a_file_that_reads_to_its_last_chunk) {
  std::string path = ::testing::TempDir() + "firelane-killed-XXXXXX";
  ::close(::mkstemp(path.data()));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string error;
    auto sink = open_file_sink(path, error);
    ChunkWriter writer(*sink, 1);
    const bool written = writer.write_header(1).empty() && writer.write_chunk(ChunkKind::kNotes, "note").empty();
    ::_exit(written ? kOk : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const std::string file = content_of(path);
  ::unlink(path.c_str());
  ChunkReader reader(file);
  ASSERT_TRUE(reader.read_header("killed.lane").ok());
  Chunk chunk;
  ASSERT_TRUE(reader.next(chunk));
  EXPECT_EQ(chunk.payload, "note");
  EXPECT_FALSE(reader.next(chunk));
  EXPECT_EQ(reader.damaged_chunks(), 0u);
  EXPECT_FALSE(reader.clean_end());
}

}  // namespace
}  // namespace firelane::format

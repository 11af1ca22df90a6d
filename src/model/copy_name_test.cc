#include "model/copy_name.h"

#include <gtest/gtest.h>

namespace firelane {
namespace {

TEST(CopyName, says_direction_and_memory) {
  const CopyKinds kinds = read_copy_name("Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(kinds.direction, CopyDirection::kHtoD);
  EXPECT_EQ(kinds.source, MemoryKind::kPageable);
  EXPECT_EQ(kinds.target, MemoryKind::kDevice);
  EXPECT_EQ(copy_name(kinds), "Memcpy HtoD (Pageable -> Device)");
}

TEST(CopyName, a_memset_says_what_it_writes) {
  const CopyKinds kinds = read_copy_name("Memset (Device Static)");
  EXPECT_EQ(kinds.direction, CopyDirection::kUnknown);
  EXPECT_EQ(kinds.target, MemoryKind::kDeviceStatic);
  EXPECT_EQ(memset_name(kinds.target), "Memset (Device Static)");
}

TEST(CopyName, words_that_nobody_knows_are_unknown) {
  for (const char* name : {"", "Memcpy", "Memcpy (", "Memcpy XtoY (Host -> Moon)", "CopyHostToDevice", "a ) (b"}) {
    const CopyKinds kinds = read_copy_name(name);
    EXPECT_EQ(kinds.direction, CopyDirection::kUnknown) << name;
    EXPECT_EQ(kinds.source, MemoryKind::kUnknown) << name;
    EXPECT_EQ(kinds.target, MemoryKind::kUnknown) << name;
  }
}

TEST(CopyName, a_copy_of_a_rocm_trace_has_a_direction) {
  EXPECT_EQ(read_copy_name("Memcpy HtoD (Host -> Device)").direction, CopyDirection::kHtoD);
}

}  // namespace
}  // namespace firelane

#include "base/cores.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace firelane {

namespace {

// A folder that stands for /, with the files of a container.
class CpuQuota : public ::testing::Test {
 protected:
  CpuQuota() : root_(std::filesystem::temp_directory_path() / ("firelane_quota_" + std::to_string(::getpid()))) {}
  ~CpuQuota() override { std::filesystem::remove_all(root_); }
  CpuQuota(const CpuQuota&) = delete;
  CpuQuota& operator=(const CpuQuota&) = delete;

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  double quota() const { return cpu_quota(root_.string()); }

 private:
  std::filesystem::path root_;
};

}  // namespace

TEST_F(CpuQuota, is_the_limit_of_a_container_that_sees_its_own_group_as_the_root) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
}

TEST_F(CpuQuota, is_none_where_the_group_says_max) {
  write("proc/self/cgroup", "0::/user.slice/a.scope\n");
  write("sys/fs/cgroup/user.slice/a.scope/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(CpuQuota, of_nested_groups_is_the_lowest) {
  write("proc/self/cgroup", "0::/pods/one\n");
  write("sys/fs/cgroup/pods/one/cpu.max", "800000 100000\n");
  write("sys/fs/cgroup/pods/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 4);
}

TEST_F(CpuQuota, of_version_1_is_found_at_the_mount_where_proc_has_the_path_of_the_host) {
  write("proc/self/cgroup", "5:memory:/docker/8d2\n4:cpuacct,cpu:/docker/8d2\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2);
}

TEST_F(CpuQuota, of_version_1_without_a_limit_is_none) {
  write("proc/self/cgroup", "4:cpu:/\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(CpuQuota, of_damaged_files_is_none) {
  write("proc/self/cgroup", "no colons\n7:\n0::relative\n0::\n");
  write("sys/fs/cgroup/cpu.max", "100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST(UsableCores, are_no_more_than_the_limit_gives_time_for) {
  const int64_t by_affinity = usable_cores(0);
  EXPECT_GE(by_affinity, 1);
  EXPECT_EQ(usable_cores(0.25), 1);
  EXPECT_EQ(usable_cores(1e6), by_affinity);
  EXPECT_EQ(usable_cores(1.5), std::min<int64_t>(2, by_affinity));
}

}  // namespace firelane

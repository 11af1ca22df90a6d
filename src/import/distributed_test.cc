#include "import/distributed.h"

#include <gtest/gtest.h>

#include "import/testing.h"

namespace firelane::importer {
namespace {

DistributedInfo read(std::initializer_list<std::pair<std::string_view, std::string_view>> keys) {
  DistributedInfo info;
  for (const auto& [key, json] : keys) EXPECT_TRUE(read_distributed(key, json, info)) << key;
  finish_distributed(info);
  return info;
}

TEST(Distributed, groups_of_torch_profiler_have_members_and_of_ours_their_first_sequence) {
  for (const bool sequences_first : {false, true}) {
    const std::pair<std::string_view, std::string_view> torch = {
        "distributedInfo",
        R"({"backend": "nccl", "rank": 3, "world_size": 4, "nccl_version": "2.28.9", "pg_config": [)"
        R"({"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 4, "ranks": [0, 1, 2, 3]},)"
        R"({"pg_name": "7", "pg_desc": "tp", "backend_config": "cuda:nccl", "ranks": [2, 3]}]})"};
    const std::pair<std::string_view, std::string_view> sequences = {"group_sequences", R"({"0": 17, "7": 0})"};
    const DistributedInfo info = sequences_first ? read({sequences, torch}) : read({torch, sequences});
    EXPECT_TRUE(info.present);
    EXPECT_EQ(info.rank, 3);
    ASSERT_EQ(info.groups.size(), 2u);
    EXPECT_EQ(info.groups[0].ranks, (std::vector<int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(info.groups[0].first_sequence, 17);
    EXPECT_EQ(info.groups[1].description, "tp");
    EXPECT_EQ(info.groups[1].size, 2);
    EXPECT_EQ(info.groups[1].first_sequence, 0);
  }
}

TEST(Distributed, a_launcher_tells_what_torch_does_not) {
  const DistributedInfo info = read(
      {{"launch", R"({"launcher": "Slurm", "rank": 9, "world_size": 16, "local_rank": 1, "local_world_size": 8})"}});
  EXPECT_TRUE(info.present);
  EXPECT_EQ(info.rank, 9);
  EXPECT_EQ(info.world_size, 16);
  EXPECT_EQ(info.local_rank, 1);
  EXPECT_EQ(info.launcher, "Slurm");
  EXPECT_FALSE(read({{"launch", R"({"launcher": "torchrun", "rank": 0, "world_size": 1})"}}).present);
}

TEST(Distributed, torch_knows_better_than_the_launcher) {
  const DistributedInfo info = read({{"launch", R"({"rank": 9, "world_size": 16})"},
                                     {"distributedInfo", R"({"backend": "gloo", "rank": 1, "world_size": 2})"}});
  EXPECT_EQ(info.rank, 1);
  EXPECT_EQ(info.world_size, 2);
}

TEST(Distributed, a_dictionary_as_python_prints_it_is_read_too) {
  const DistributedInfo info = read(
      {{"distributedInfo",
        R"("{'backend': 'nccl', 'rank': 5, 'world_size': 8, 'nccl_version': None, 'pg_config': [{'pg_name': '0', 'pg_desc': \"it's\", 'ranks': (4, 5)}]}")"}});
  EXPECT_EQ(info.backend, "nccl");
  EXPECT_EQ(info.rank, 5);
  EXPECT_EQ(info.nccl_version, "");
  ASSERT_EQ(info.groups.size(), 1u);
  EXPECT_EQ(info.groups[0].description, "it's");
  EXPECT_EQ(info.groups[0].ranks, (std::vector<int64_t>{4, 5}));
}

TEST(Distributed, a_list_that_was_cut_gives_no_members) {
  EXPECT_EQ(parse_ranks("[0, 1, 7]").ranks, (std::vector<int64_t>{0, 1, 7}));
  EXPECT_FALSE(parse_ranks("[0, 1, 7]").is_cut);
  EXPECT_TRUE(parse_ranks("[0, 1, ..., 63]").is_cut);
  EXPECT_TRUE(parse_ranks("").ranks.empty());
  const DistributedInfo info = read(
      {{"distributedInfo", R"({"rank": 0, "pg_config": [{"pg_name": "0", "pg_size": 64, "ranks": "[0, ..., 63]"}]})"}});
  ASSERT_EQ(info.groups.size(), 1u);
  EXPECT_TRUE(info.groups[0].ranks.empty());
  EXPECT_EQ(info.groups[0].size, 64);
}

TEST(Distributed, what_is_no_dictionary_changes_nothing) {
  for (const std::string_view json : {"", "[]", "3", "\"x\"", "null", "{\"rank\": ", R"("{'rank'")", "\"{\""}) {
    EXPECT_FALSE(read({{"distributedInfo", json}}).present) << json;
  }
  DistributedInfo info;
  EXPECT_FALSE(read_distributed("torch", "{}", info));
}

}  // namespace
}  // namespace firelane::importer

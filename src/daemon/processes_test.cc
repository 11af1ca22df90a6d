#include "daemon/processes.h"

#include <gtest/gtest.h>

namespace firelane::daemon {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
const Sender kUser = {.pid = 500, .uid = 1000};
const Sender kRoot = {.pid = 501, .uid = 0};

// A process that polls: itself, then its parents.
std::string poll(Processes& all, std::vector<int32_t> pids, int64_t now_ns = 0, int32_t kinds = 3, int64_t job = 0) {
  const ConfigRequest request{.kinds = kinds, .job = job, .pids = pids};
  const Sender sender{.pid = pids.front(), .uid = 1000};
  std::string config = all.ask(request, sender, now_ns);
  if (!config.empty()) all.delivered(request, sender);
  return config;
}

TEST(Processes, only_the_process_that_is_meant_gets_the_request_and_once) {
  Processes all;
  EXPECT_EQ(poll(all, {10, 1}), "");
  EXPECT_EQ(poll(all, {20, 1}), "");
  const auto matches = all.give(20, "A=1", kUser, 0);
  ASSERT_EQ(matches.found.size(), 1U);
  EXPECT_EQ(matches.found[0]->pid, 20);
  EXPECT_EQ(poll(all, {10, 1}), "");
  EXPECT_EQ(poll(all, {20, 1}, 0, 1), "");  // it asks for counters: a trace is running
  EXPECT_EQ(poll(all, {20, 1}), "A=1");
  EXPECT_EQ(poll(all, {20, 1}), "");
}

TEST(Processes, a_launchers_workers_are_meant_with_it) {
  Processes all;
  poll(all, {5, 1});
  poll(all, {10, 5, 1});
  poll(all, {11, 5, 1});
  poll(all, {12, 6, 1});
  EXPECT_EQ(all.give(5, "A=1", kUser, 0).found.size(), 3U);
  EXPECT_EQ(poll(all, {11, 5, 1}), "A=1");
  EXPECT_EQ(poll(all, {12, 6, 1}), "");
}

TEST(Processes, a_process_in_a_container_is_known_by_its_id_outside) {
  Processes all;
  const ConfigRequest request{.kinds = 3, .pids = {7, 1}};
  all.ask(request, {.pid = 4711, .uid = 1000}, 0);
  const auto matches = all.give(4711, "A=1", kUser, 0);
  ASSERT_EQ(matches.found.size(), 1U);
  EXPECT_EQ(matches.found[0]->own_pid, 7);
  EXPECT_EQ(all.ask(request, {.pid = 4711, .uid = 1000}, 0), "A=1");
}

TEST(Processes, nobody_asks_something_of_another_users_process_but_root) {
  Processes all;
  poll(all, {10, 1});
  const auto refused = all.give(10, "A=1", {.pid = 1, .uid = 2000}, 0);
  EXPECT_TRUE(refused.found.empty() && refused.other_users);
  EXPECT_TRUE(all.give(10, "A=1", Sender{}, 0).found.empty());
  EXPECT_EQ(all.give(10, "A=1", kRoot, 0).found.size(), 1U);
  EXPECT_TRUE(all.give(10, "A=2", kRoot, 0).busy);
}

TEST(Processes, an_answer_that_could_not_be_sent_is_given_again) {
  Processes all;
  poll(all, {10, 1});
  all.give(10, "A=1", kUser, 0);
  const ConfigRequest request{.kinds = 3, .pids = {10, 1}};
  EXPECT_EQ(all.ask(request, {.pid = 10, .uid = 1000}, 0), "A=1");
  EXPECT_EQ(all.ask(request, {.pid = 10, .uid = 1000}, 0), "A=1");
}

TEST(Processes, jobs_are_found_by_their_number) {
  Processes all;
  poll(all, {10, 1}, 0, 3, 77);
  poll(all, {11, 1}, 0, 3, 77);
  poll(all, {12, 1}, 0, 3, 0);
  EXPECT_EQ(all.give_to_job(77, "A=1", kUser, 0).found.size(), 2U);
  EXPECT_TRUE(all.give_to_job(0, "A=1", kUser, 0).found.empty());
}

TEST(Processes, silent_ones_are_forgotten_and_there_are_never_too_many) {
  Processes all;
  poll(all, {10, 1});
  EXPECT_TRUE(all.give(10, "A=1", kUser, 61 * kSecond).found.empty());
  for (int32_t pid = 1; pid <= 4'100; ++pid) poll(all, {pid}, pid);
  EXPECT_EQ(all.all().size(), Processes::kMost);
  EXPECT_TRUE(all.all().contains(4'100));
}

}  // namespace
}  // namespace firelane::daemon

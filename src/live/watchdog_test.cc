// The watchdog with an invented GIL: when it tells, what it writes, and how it ends. Nothing here depends on how long
// anything takes: tests wait for what has to come, or for a number of looks at the GIL.
#include "live/watchdog.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace firelane::live {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLimit_ms = 24;
constexpr int kSomeLooks = 20;  // those of more than one limit

class WatchdogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "firelane-watchdog-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string kept() const { return (folder_ / "kept").string(); }
  fs::path incident(const char* name) const { return folder_ / "kept" / name; }

  fs::path folder_;
};

void let_others_run() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

void wait_for(const std::atomic<int>& count, int least) {
  while (count < least) let_others_run();
}

void wait_for_end(Watchdog& watchdog) {
  while (!watchdog.end(std::chrono::milliseconds(100))) {
  }
}

int64_t wait_for_incident(Watchdog& watchdog) {
  for (;;) {
    if (const int64_t step = watchdog.take_incident(); step >= 0) return step;
    let_others_run();
  }
}

std::string text_in(const fs::path& path) {
  std::ifstream in(path);
  return (std::ostringstream() << in.rdbuf()).str();
}

TEST_F(WatchdogTest, TellsOncePerFeedOfAGilThatIsKept) {
  Watchdog watchdog(kept(), [] { return uint64_t{7}; });
  watchdog.feed(5, kLimit_ms);
  EXPECT_EQ(wait_for_incident(watchdog), 5);
  EXPECT_EQ(watchdog.take_incident(), -1);
  watchdog.feed(6, kLimit_ms);
  EXPECT_EQ(wait_for_incident(watchdog), 6);
  wait_for_end(watchdog);
  EXPECT_TRUE(text_in(incident("step-000000005-hang/incident.txt"))
                  .starts_with("hang: no step for at least 0.0 s after step 4: a thread keeps the GIL"));
  // This program is not Python: the file says so.
  EXPECT_NE(text_in(incident("step-000000006-hang/stacks.txt")).find("not a Python 3 program"), std::string::npos);
  EXPECT_FALSE(fs::exists(incident("step-000000006-hang/stacks.txt.part")));
}

TEST_F(WatchdogTest, AGilThatIsFreeOrChangesHandsIsNoHang) {
  for (const bool changes : {false, true}) {
    std::atomic<int> looks = 0;
    Watchdog watchdog(kept(), [&looks, changes] {
      const int look = ++looks;
      return changes ? static_cast<uint64_t>(look) : uint64_t{0};
    });
    watchdog.feed(5, kLimit_ms);
    wait_for(looks, kSomeLooks);
    wait_for_end(watchdog);
    EXPECT_EQ(watchdog.take_incident(), -1);
  }
  EXPECT_FALSE(fs::exists(kept()));
}

TEST_F(WatchdogTest, WhoFeedsDoesNotWaitForALookAndCountsBeforeIt) {
  std::atomic<int> looks = 0;
  std::atomic<Watchdog*> fed = nullptr;
  Watchdog watchdog(kept(), [&looks, &fed] {
    fed.load()->feed(++looks, kLimit_ms);  // from inside of a look: it would wait for itself
    return uint64_t{7};
  });
  fed = &watchdog;
  watchdog.feed(0, kLimit_ms);
  wait_for(looks, kSomeLooks);
  wait_for_end(watchdog);
  EXPECT_EQ(watchdog.take_incident(), -1);
}

TEST_F(WatchdogTest, ALookThatFailsIsOneThatSawNobody) {
  std::atomic<int> looks = 0;
  Watchdog watchdog(kept(), [&looks]() -> uint64_t {
    if (++looks <= kSomeLooks) throw std::runtime_error("no memory");
    return 7;
  });
  watchdog.feed(5, kLimit_ms);
  EXPECT_EQ(wait_for_incident(watchdog), 5);
  EXPECT_GT(looks, kSomeLooks);
  wait_for_end(watchdog);
}

TEST_F(WatchdogTest, ItsThreadTakesNoSignals) {
  std::atomic<int> is_blocked = -1;
  Watchdog watchdog(kept(), [&is_blocked] {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    is_blocked = static_cast<int>(::sigismember(&mask, SIGTERM) == 1 && ::sigismember(&mask, SIGUSR1) == 1);
    return uint64_t{0};
  });
  watchdog.feed(5, kLimit_ms);
  wait_for(is_blocked, 0);
  EXPECT_EQ(is_blocked, 1);
  wait_for_end(watchdog);
  sigset_t own;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(::sigismember(&own, SIGUSR1), 0);
}

// A look that does not come back until it may.
struct Stuck {
  std::atomic<int> looks = 0;
  std::atomic<bool> may_go_on = false;

  uint64_t look() {
    ++looks;
    while (!may_go_on) let_others_run();
    return 7;
  }
};

TEST_F(WatchdogTest, EndsWithoutWaitingForAThreadThatIsStuck) {
  const auto stuck = std::make_shared<Stuck>();
  {
    Watchdog watchdog(kept(), [stuck] { return stuck->look(); });
    watchdog.feed(5, kLimit_ms);
    wait_for(stuck->looks, 1);
    watchdog.feed(6, kLimit_ms);
    EXPECT_FALSE(watchdog.end(std::chrono::milliseconds(1)));
  }
  stuck->may_go_on = true;
  while (stuck.use_count() > 1) let_others_run();  // the thread ends by itself
  EXPECT_FALSE(fs::exists(kept()));                // and writes nothing after that
}

TEST_F(WatchdogTest, AForkedChildCanUseAndEndWhatHasNoThreadThere) {
  const auto stuck = std::make_shared<Stuck>();
  auto watchdog = std::make_unique<Watchdog>(kept(), [stuck] { return stuck->look(); });
  watchdog->feed(5, kLimit_ms);
  wait_for(stuck->looks, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    watchdog->feed(6, kLimit_ms);
    const bool is_quiet = watchdog->take_incident() == -1 && watchdog->end(std::chrono::milliseconds(0));
    watchdog.reset();
    ::_exit(is_quiet ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  stuck->may_go_on = true;
  EXPECT_EQ(wait_for_incident(*watchdog), 5);  // the parent's goes on
  wait_for_end(*watchdog);
}

}  // namespace
}  // namespace firelane::live

// Calls through CUPTI's callbacks into the thread's stream: which are kept, with what number, on whose thread.
#include "record/cupti/call_hook.h"

#include <gtest/gtest.h>

#include <regex>
#include <thread>

#include "record/core/testing.h"
#include "record/cupti/testing.h"

namespace firelane::cupti {
namespace {

using namespace test;
using record::test::records_of;
using record::test::start;
using record::test::TemporaryFolder;

constexpr CUpti_CallbackDomain kRuntimeDomain = CUPTI_CB_DOMAIN_RUNTIME_API;
constexpr CUpti_CallbackDomain kDriverDomain = CUPTI_CB_DOMAIN_DRIVER_API;
constexpr uint32_t kLaunch = 211, kCopy = 31, kDriverLaunch = 307;

class CallHooks : public ::testing::Test {
 protected:
  void begin() {
    CUptiResult result = CUPTI_SUCCESS;
    ASSERT_TRUE(hook.start(result));
  }
  void call(CUpti_CallbackDomain domain, uint32_t id, uint32_t correlation) {
    fake.call_through(domain, id, correlation, [] {});
  }
  // "1: cuLaunchKernel 49 #8; 0: cudaLaunchKernel 48 #7; ": thread, name, scope, correlation.
  std::string finish() {
    hook.stop();
    session->stop();
    const std::string text = records_of(session->path(), {.times = false, .notes = false, .chunks = false});
    const std::regex calls(
        "thread (\\d+) slice \"(\\w+)\" scope (\\d+) ticks \\d+\nthread \\d+ attribute 7 = (\\d+)\n");
    std::string result;
    for (std::sregex_iterator at(text.begin(), text.end(), calls), end; at != end; ++at) {
      result += at->format("$1: $2 $3 #$4; ");
    }
    return result;
  }

  TemporaryFolder folder;
  FakeCupti fake;
  std::unique_ptr<record::Session> session = start({.cuda = true, .output = folder / "run.lane"});
  CallHook hook{fake.api()};
};

TEST_F(CallHooks, a_call_is_a_slice_of_its_thread_with_its_correlation) {
  begin();
  call(kRuntimeDomain, kLaunch, 7);
  std::thread([&] { call(kDriverDomain, kDriverLaunch, 8); }).join();
  const std::string calls = finish();  // threads in any order
  EXPECT_NE(calls.find("0: cudaLaunchKernel 48 #7; "), std::string::npos) << calls;
  EXPECT_NE(calls.find("1: cuLaunchKernel 49 #8; "), std::string::npos) << calls;
}

TEST_F(CallHooks, of_nested_calls_only_the_outermost_is_kept) {
  begin();
  fake.call_through(kRuntimeDomain, kLaunch, 7, [&] { call(kDriverDomain, kDriverLaunch, 8); });
  call(kDriverDomain, kDriverLaunch, 9);
  EXPECT_EQ(finish(), "0: cudaLaunchKernel 48 #7; 0: cuLaunchKernel 49 #9; ");
}

TEST_F(CallHooks, unknown_ids_and_other_domains_are_ignored) {
  begin();
  CUpti_CallbackData data{};
  for (const CUpti_ApiCallbackSite site : {CUPTI_API_ENTER, CUPTI_API_EXIT}) {
    data.callbackSite = site;
    fake.on_call(nullptr, kRuntimeDomain, 100'000, &data);
    fake.on_call(nullptr, kDriverDomain, 6, &data);
    fake.on_call(nullptr, CUPTI_CB_DOMAIN_RESOURCE, 1, &data);
  }
  call(kRuntimeDomain, 3, 1);  // cudaGetDevice: nobody asked for it
  call(kRuntimeDomain, kCopy, 2);
  EXPECT_EQ(finish(), "0: cudaMemcpy 48 #2; ");
}

TEST_F(CallHooks, a_call_whose_other_end_was_not_seen_does_not_hide_later_ones) {
  fake.callback(kRuntimeDomain, kLaunch, 1, CUPTI_API_ENTER);  // nobody listens
  begin();
  fake.callback(kRuntimeDomain, kLaunch, 1, CUPTI_API_EXIT);
  fake.callback(kRuntimeDomain, kLaunch, 2, CUPTI_API_ENTER);
  hook.stop();
  fake.callback(kRuntimeDomain, kLaunch, 2, CUPTI_API_EXIT);
  begin();
  call(kRuntimeDomain, kCopy, 3);
  EXPECT_EQ(finish(), "0: cudaMemcpy 48 #3; ");
}

TEST_F(CallHooks, while_the_session_is_paused_calls_are_left_out) {
  begin();
  session->pause();
  call(kRuntimeDomain, kLaunch, 1);
  session->resume();
  call(kRuntimeDomain, kLaunch, 2);
  EXPECT_EQ(finish(), "0: cudaLaunchKernel 48 #2; ");
}

TEST_F(CallHooks, another_subscriber_is_an_answer_not_a_failure) {
  fake.has_other_subscriber = true;
  CUptiResult result = CUPTI_SUCCESS;
  EXPECT_FALSE(hook.start(result));
  EXPECT_EQ(result, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  hook.stop();
  fake.has_other_subscriber = false;
  begin();
  EXPECT_FALSE(fake.runtime_callbacks.empty());
}

}  // namespace
}  // namespace firelane::cupti

#include "daemon/wire.h"

#include <gtest/gtest.h>

#include <cstring>

namespace firelane::daemon {
namespace {

std::string bytes_of(std::initializer_list<int32_t> numbers) {
  std::string out(numbers.size() * 4, '\0');
  std::memcpy(out.data(), numbers.begin(), out.size());
  return out;
}

std::string message(std::string type, const std::string& body, uint64_t size) {
  type.resize(32, '\0');
  return std::string(reinterpret_cast<const char*>(&size), 8) + type + body;
}

TEST(Wire, what_kineto_sends_is_understood) {
  // Sent by libkineto of torch 2.11: kinds 3, five pids, job 0.
  const std::string body = bytes_of({3, 5, 0, 0, 30306, 30296, 30295, 19168, 19167});
  const auto parsed = parse(message("req", body, body.size()));
  ASSERT_TRUE(parsed && std::holds_alternative<ConfigRequest>(*parsed));
  const auto& request = std::get<ConfigRequest>(*parsed);
  EXPECT_EQ(request.kinds, 3);
  EXPECT_EQ(request.job, 0);
  EXPECT_EQ(request.pids, (std::vector<int32_t>{30306, 30296, 30295, 19168, 19167}));
  const auto registration = parse(message("ctxt", bytes_of({1, 42, 7, 0}), 16));
  ASSERT_TRUE(registration && std::holds_alternative<Registration>(*registration));
  EXPECT_EQ(std::get<Registration>(*registration).pid, 42);
  EXPECT_EQ(std::get<Registration>(*registration).job, 7);
}

TEST(Wire, answers_have_kinetos_layout) {
  EXPECT_EQ(config_answer("A=1\n"), message("req", "A=1\n", 4));
  EXPECT_EQ(config_answer(""), message("req", "", 0));
  EXPECT_EQ(registration_answer(1), message("ctxt", bytes_of({1}), 4));
  EXPECT_EQ(command_text(command_message("list")), "list");
}

TEST(Wire, numbers_that_lie_are_no_message) {
  const std::string body = bytes_of({3, 2, 0, 0, 11, 12});
  EXPECT_TRUE(parse(message("req", body, body.size())));
  EXPECT_FALSE(parse(message("req", body, body.size() + 1)));
  EXPECT_FALSE(parse(message("req", body, UINT64_MAX)));
  for (const int32_t count : {-1, 0, 1, 3, INT32_MAX, INT32_MIN}) {
    const std::string lie = bytes_of({3, count, 0, 0, 11, 12});
    EXPECT_FALSE(parse(message("req", lie, lie.size()))) << count;
  }
  EXPECT_FALSE(parse(message("req", body + "x", body.size() + 1)));
  EXPECT_FALSE(parse(message("ctxt", "short", 5)));
  EXPECT_FALSE(parse(message("other", body, body.size())));
  EXPECT_FALSE(parse(message(std::string(32, 'r'), body, body.size())));
  const std::string large(kMaxMessage, 'x');
  EXPECT_FALSE(parse(message("firelane", large, large.size())));
  const std::string whole = message("req", body, body.size());
  for (size_t cut = 0; cut < whole.size(); ++cut) EXPECT_FALSE(parse(whole.substr(0, cut))) << cut;
}

}  // namespace
}  // namespace firelane::daemon

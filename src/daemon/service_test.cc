// The daemon over real sockets, in a folder of its own.
#include "daemon/service.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

namespace firelane::daemon {
namespace {

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    folder_ = std::filesystem::temp_directory_path() / ("fl-daemon-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    ::setenv("KINETO_IPC_SOCKET_DIR", folder_.c_str(), 1);
    EXPECT_EQ(::pipe(wake_), 0);
  }
  ~ServiceTest() override {
    stop();
    std::filesystem::remove_all(folder_);
  }
  void start() {
    Result<Endpoint> endpoint = Endpoint::listen(kEndpoint);
    ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
    thread_ = std::thread([this, taken = std::move(endpoint).value()]() mutable {
      Service(std::move(taken), [](const std::string&) {}, now_ns()).serve(wake_[0]);
    });
  }
  void stop() {
    if (!thread_.joinable()) return;
    EXPECT_EQ(::write(wake_[1], "x", 1), 1);
    thread_.join();
    char byte = 0;
    EXPECT_EQ(::read(wake_[0], &byte, 1), 1);
  }

  std::filesystem::path folder_;
  int wake_[2] = {-1, -1};
  std::thread thread_;
};

// A process that polls as libkineto does: what it is told.
std::string poll_once(const std::string& name) {
  Result<Endpoint> process = Endpoint::listen(name);
  const int32_t pid = ::getpid();
  int32_t body[5] = {3, 1, 0, 0, pid};
  std::string text = config_answer(std::string(reinterpret_cast<const char*>(body), sizeof body));
  while (!process.value().send_to_name(text, kEndpoint)) std::this_thread::yield();  // its queue is full
  const std::optional<Datagram> answer = process.value().receive(200'000);
  return answer && answer->bytes.size() >= kHeadSize ? answer->bytes.substr(kHeadSize) : "no answer";
}

TEST_F(ServiceTest, a_process_that_polls_is_told_what_was_asked_of_it) {
  start();
  EXPECT_EQ(poll_once("client"), "");
  const std::string pid = std::to_string(::getpid());
  EXPECT_EQ(ask_daemon("list").value(), "process " + pid + " " + pid + " 0\n");
  EXPECT_EQ(ask_daemon("who trigger " + pid).value(), "asked " + pid + " " + pid + "\n");
  EXPECT_EQ(poll_once("client"), "");
  EXPECT_EQ(ask_daemon("trigger " + pid + "\nACTIVITIES_LOG_FILE=x\n").value(), "asked " + pid + " " + pid + "\n");
  EXPECT_EQ(poll_once("client"), "ACTIVITIES_LOG_FILE=x\n");
  EXPECT_EQ(poll_once("client"), "");
  EXPECT_TRUE(ask_daemon("trigger 99999999\nA=1\n").value().starts_with("unknown: "));
  for (const std::string wrong : {"trigger x\nA=1\n", "trigger -4\nA=1\n", "nonsense", "", "trigger 5"})
    EXPECT_TRUE(ask_daemon(wrong).value().starts_with("error: ")) << wrong;
}

TEST_F(ServiceTest, a_second_daemon_is_refused_and_a_dead_ones_file_replaced) {
  start();
  const Result<Endpoint> second = Endpoint::listen(kEndpoint);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("a daemon answers already"), std::string::npos);
  stop();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "dynolog"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (folder_ / "dynolog").c_str());
  const int dead = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  ASSERT_EQ(::bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(dead);  // its file stays, as after kill -9
  start();
  EXPECT_EQ(poll_once("client"), "");
}

TEST_F(ServiceTest, datagrams_of_strangers_do_nothing) {
  start();
  Result<Endpoint> stranger = Endpoint::listen("stranger");
  std::string huge(100'000, 'x');
  for (size_t size : {size_t{0}, size_t{1}, size_t{39}, size_t{40}, size_t{41}, size_t{5000}, kMaxMessage,
                      kMaxMessage + 1, huge.size()})
    stranger.value().send_to_name(std::string_view(huge).substr(0, size), kEndpoint);
  std::string no_zero = config_answer("abc");
  no_zero.replace(8, 32, 32, 'r');
  stranger.value().send_to_name(no_zero, kEndpoint);
  const int nameless = ::socket(AF_UNIX, SOCK_DGRAM, 0);  // cannot be answered
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (folder_ / "dynolog").c_str());
  const std::string list = command_message("list");
  ::sendto(nameless, list.data(), list.size(), 0, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  // Descriptors that come along are not taken.
  char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{.iov_base = huge.data(), .iov_len = 50};
  msghdr head{};
  head.msg_name = &address;
  head.msg_namelen = sizeof address;
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  head.msg_control = control;
  head.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&head);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &nameless, sizeof(int));
  ::sendmsg(nameless, &head, 0);
  ::close(nameless);
  EXPECT_EQ(poll_once("client"), "");
}

TEST_F(ServiceTest, a_program_whose_folder_is_spelled_otherwise_gets_no_answer) {
  start();  // libkineto of torch 2.11 aborts its program when the answer's folder is not its own, letter by letter
  ::setenv("KINETO_IPC_SOCKET_DIR", (folder_.string() + "/.").c_str(), 1);
  Result<Endpoint> process = Endpoint::listen("client");
  ASSERT_TRUE(process.value().send_to_name(command_message("list"), kEndpoint));
  EXPECT_FALSE(process.value().receive(300));
  ::setenv("KINETO_IPC_SOCKET_DIR", "relative", 1);
  EXPECT_FALSE(Endpoint::listen("client").ok());
  ::setenv("KINETO_IPC_SOCKET_DIR", folder_.c_str(), 1);
  EXPECT_EQ(poll_once("another"), "");
}

TEST_F(ServiceTest, without_a_daemon_a_question_has_an_answer) {
  EXPECT_EQ(ask_daemon("list").error().message, "no daemon answers");
}

}  // namespace
}  // namespace firelane::daemon

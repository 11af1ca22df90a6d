#include "cli/attached.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

namespace firelane::cli {

namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void note_interrupt(int) { g_interrupted = 1; }

// The first one asks the program to take everything out; a second one ends this process, and the program notices.
void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // no SA_RESTART: poll() has to return
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

Error system_error(const std::string& what) { return Error{what + ": " + std::strerror(errno)}; }

}  // namespace

Result<Channel> Channel::open() {
  Channel out;
  std::array<uint8_t, 12> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return system_error("getrandom");
  out.address_ = "firelane-attach-";
  for (const uint8_t byte : random) {
    std::array<char, 3> hex;
    std::snprintf(hex.data(), hex.size(), "%02x", byte);
    out.address_ += hex.data();
  }
  out.listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un name{};
  name.sun_family = AF_UNIX;
  out.address_.copy(name.sun_path + 1, sizeof(name.sun_path) - 1);
  const auto size = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 + out.address_.size());
  if (out.listener_ < 0 || ::bind(out.listener_, reinterpret_cast<const struct sockaddr*>(&name), size) != 0 ||
      ::listen(out.listener_, 1) != 0)
    return system_error("a socket for the program to answer");
  catch_interrupts();
  return out;
}

Channel::Channel(Channel&& other) noexcept
    : address_(std::move(other.address_)),
      received_(std::move(other.received_)),
      listener_(std::exchange(other.listener_, -1)),
      connection_(std::exchange(other.connection_, -1)),
      process_(std::exchange(other.process_, -1)),
      asked_to_stop_(other.asked_to_stop_) {}

Channel::~Channel() {
  for (const int file : {listener_, connection_, process_}) {
    if (file >= 0) ::close(file);
  }
}

Result<bool> Channel::wait_for(const live::Process& process, double seconds) {
  process_ = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    std::array<struct pollfd, 2> ready{
        {{.fd = listener_, .events = POLLIN, .revents = 0}, {.fd = process_, .events = POLLIN, .revents = 0}}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (g_interrupted != 0 || left.count() <= 0) return false;
    const int count = ::poll(ready.data(), ready.size(), static_cast<int>(left.count()));
    if (count < 0 && errno != EINTR) return system_error("poll");
    if (count <= 0) continue;
    if ((ready[0].revents & POLLIN) != 0) {
      connection_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      struct ucred peer{};
      socklen_t size = sizeof(peer);
      if (connection_ >= 0 && ::getsockopt(connection_, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
          peer.pid == process.pid)
        return true;
      if (connection_ >= 0) ::close(std::exchange(connection_, -1));  // some other process
    } else if ((ready[1].revents & POLLIN) != 0) {
      return Error{std::to_string(process.pid) + ": the program ended before it could be recorded"};
    }
  }
}

void Channel::send(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(connection_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // next() says so
    sent += static_cast<size_t>(count);
  }
}

Message Channel::next() {
  for (;;) {
    const size_t end = received_.find('\n');
    if (end != std::string::npos) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      const size_t space = line.find(' ');
      return {line.substr(0, space), space == std::string::npos ? "" : line.substr(space + 1)};
    }
    if (g_interrupted != 0 && !asked_to_stop_) {
      asked_to_stop_ = true;
      send("stop");
    }
    std::array<struct pollfd, 2> ready{
        {{.fd = connection_, .events = POLLIN, .revents = 0}, {.fd = process_, .events = POLLIN, .revents = 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno == EINTR) continue;
    if (ready[0].revents != 0) {
      std::array<char, 4096> bytes;
      const ssize_t count = ::recv(connection_, bytes.data(), bytes.size(), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count > 0) {
        received_.append(bytes.data(), static_cast<size_t>(count));
        continue;
      }
    }
    // Its end closes the connection a moment before it can be seen.
    return {.program_ended = ::poll(&ready[1], 1, 1000) > 0};
  }
}

}  // namespace firelane::cli

#include "daemon/endpoint.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace firelane::daemon {
namespace {

std::string socket_folder() {
  const char* folder = std::getenv("KINETO_IPC_SOCKET_DIR");
  return folder != nullptr ? folder : "";
}

struct Address {
  sockaddr_un raw{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw); }
};

// Abstract names count their final 0, as Kineto's do.
std::optional<Address> address_of(std::string_view name) {
  Address out;
  out.raw.sun_family = AF_UNIX;
  const std::string folder = socket_folder();
  const std::string text = folder.empty() ? std::string(1, '\0').append(name) : folder + "/" + std::string(name);
  if (text.size() + 1 > sizeof out.raw.sun_path) return std::nullopt;
  std::memcpy(out.raw.sun_path, text.data(), text.size());
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + 1);
  return out;
}

// A socket's file that nobody listens on any more.
bool is_left_behind(const std::string& path, const Address& address) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const int probe = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool refused = probe >= 0 && ::connect(probe, address.get(), address.size) != 0 && errno == ECONNREFUSED;
  if (probe >= 0) ::close(probe);
  return refused;
}

// The folder of a socket's file, as it is spelled; "" for an abstract name.
std::string folder_of(std::string_view path) {
  path = path.substr(0, path.find('\0'));
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

Sender sender_in(msghdr& head) {
  Sender out;
  for (cmsghdr* part = CMSG_FIRSTHDR(&head); part != nullptr; part = CMSG_NXTHDR(&head, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) continue;
    ucred who{};
    std::memcpy(&who, CMSG_DATA(part), sizeof who);
    out = {.pid = who.pid, .uid = who.uid};
  }
  return out;
}

}  // namespace

Result<Endpoint> Endpoint::bind_to(std::string_view name) {
  const std::string folder = socket_folder();
  if (!folder.empty() && !folder.starts_with('/'))
    return Error{"KINETO_IPC_SOCKET_DIR: needs an absolute path, spelled as for the program"};
  const std::optional<Address> address = address_of(name);
  if (!address) return Error{"KINETO_IPC_SOCKET_DIR: the path is too long for a Unix socket"};
  const std::string path = address->raw.sun_path;  // empty when abstract
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return Error{std::string("a Unix socket: ") + std::strerror(errno)};
  Endpoint out(descriptor, "");
  if (!path.empty() && is_left_behind(path, *address)) ::unlink(path.c_str());
  if (::bind(descriptor, address->get(), address->size) != 0) {
    const std::string where = path.empty() ? "the name " + std::string(name) : path;
    if (errno == EADDRINUSE)
      return Error{where + " is taken: a daemon answers already (dynolog, or another firelane daemon)"};
    return Error{where + ": " + std::strerror(errno)};
  }
  out.path_ = path;
  if (!path.empty()) ::chmod(path.c_str(), 0666);  // processes of all users ask; who may do what is decided by sender
  const int on = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  return out;
}

Result<Endpoint> Endpoint::listen(std::string_view name) { return bind_to(name); }

Result<Endpoint> Endpoint::ask() { return bind_to("firelane-trigger-" + std::to_string(::getpid())); }

Endpoint::Endpoint(Endpoint&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::exchange(other.path_, "")) {}

Endpoint::~Endpoint() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::optional<Datagram> Endpoint::receive(int timeout_ms, int wake) {
  std::array<pollfd, 2> wanted = {{{descriptor_, POLLIN, 0}, {wake, POLLIN, 0}}};
  if (::poll(wanted.data(), wake >= 0 ? 2 : 1, timeout_ms) <= 0 || (wanted[0].revents & POLLIN) == 0)
    return std::nullopt;
  Datagram out;
  out.bytes.resize(kMaxMessage + 1);  // one more: what is too large is seen to be
  sockaddr_un from{};
  iovec part{.iov_base = out.bytes.data(), .iov_len = out.bytes.size()};
  // Room for the sender's ids alone: descriptors that somebody sends along are not taken.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  msghdr head{};
  head.msg_name = &from;
  head.msg_namelen = sizeof from;
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  head.msg_control = control.data();
  head.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(descriptor_, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return std::nullopt;
  out.bytes.resize(static_cast<size_t>(size));
  if (head.msg_namelen > offsetof(sockaddr_un, sun_path))
    out.from.assign(reinterpret_cast<const char*>(&from), head.msg_namelen);
  out.sender = sender_in(head);
  return out;
}

bool Endpoint::send(std::string_view bytes, const std::string& address) {
  if (address.size() <= offsetof(sockaddr_un, sun_path)) return false;
  // Kineto ends its program when an answer comes from a folder that is spelled otherwise than its own.
  if (folder_of(std::string_view(address).substr(offsetof(sockaddr_un, sun_path))) != folder_of(path_)) return false;
  return ::sendto(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(address.data()),
                  static_cast<socklen_t>(address.size())) == static_cast<ssize_t>(bytes.size());
}

bool Endpoint::send_to_name(std::string_view bytes, std::string_view name) {
  const std::optional<Address> address = address_of(name);
  return address && send(bytes, std::string(reinterpret_cast<const char*>(&address->raw), address->size));
}

}  // namespace firelane::daemon

// A Unix datagram socket with a name, as Kineto names them: abstract, or a file in $KINETO_IPC_SOCKET_DIR.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "daemon/processes.h"

namespace firelane::daemon {

struct Datagram {
  std::string bytes;
  std::string from;  // the sender's address, raw; empty if it has none and cannot be answered
  Sender sender;
};

class Endpoint {
 public:
  // A name that is taken is an Error; a file that a dead daemon left is replaced.
  static Result<Endpoint> listen(std::string_view name);
  // Under a name of its own, for one question.
  static Result<Endpoint> ask();

  Endpoint(Endpoint&& other) noexcept;
  Endpoint& operator=(Endpoint&&) = delete;
  ~Endpoint();

  // Waits up to `timeout_ms` (-1: for ever, or until `wake` can be read). Larger datagrams are cut.
  std::optional<Datagram> receive(int timeout_ms, int wake = -1);
  // Never waits. False: nobody is there, or its queue is full.
  bool send(std::string_view bytes, const std::string& address);
  bool send_to_name(std::string_view bytes, std::string_view name);

 private:
  explicit Endpoint(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  static Result<Endpoint> bind_to(std::string_view name);

  int descriptor_;
  std::string path_;  // of its file, removed at the end; "": abstract
};

}  // namespace firelane::daemon

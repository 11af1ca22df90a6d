// Kineto's on-demand protocol, byte by byte: what PyTorch under KINETO_USE_DAEMON=1 asks a daemon on its machine.
//
// Unix datagrams to the abstract name "dynolog", or to the file of that name in $KINETO_IPC_SOCKET_DIR. All numbers
// are the machine's own (little-endian where PyTorch runs).
//
//   message   size u64: bytes that follow the head; type char[32], ends with 0; then the body
//   "ctxt"    gpu i32, pid i32, job i64                    a process registers a GPU; the answer is an i32
//   "req"     kinds i32, count i32, job i64, pids i32[count]   the process, then its parents; asked every five seconds;
//                                                          the answer is KEY=VALUE lines, or nothing
//   "firelane"  text                                       ours: a first line that is a command, answered in text
//
// Senders may be anybody on the machine: parse() believes no number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace firelane::daemon {

inline constexpr std::string_view kEndpoint = "dynolog";
inline constexpr size_t kHeadSize = 8 + 32;
inline constexpr size_t kMaxMessage = 16384;  // a request of 4,000 parents
inline constexpr int32_t kActivities = 2;     // of the kinds that a request asks for: a trace, not counters

struct Registration {
  int32_t gpu = 0;
  int32_t pid = 0;
  int64_t job = 0;
};

struct ConfigRequest {
  int32_t kinds = 0;
  int64_t job = 0;
  std::vector<int32_t> pids;  // as the process sees them: itself first
};

struct Command {
  std::string text;
};

using Message = std::variant<Registration, ConfigRequest, Command>;

// Nothing for what is no message of this protocol.
std::optional<Message> parse(std::string_view datagram);

std::string registration_answer(int32_t count);
std::string config_answer(std::string_view config);
std::string command_message(std::string_view text);
// The text of a command's answer.
std::optional<std::string> command_text(std::string_view datagram);

}  // namespace firelane::daemon

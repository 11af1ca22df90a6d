#include "daemon/service.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>

namespace firelane::daemon {
namespace {

constexpr int kAnswerMs = 10'000;  // a busy machine's daemon takes a while, another's never answers
constexpr int kSendMs = 1000;
constexpr size_t kMaxConfig = 8192;
constexpr int64_t kMost = INT32_MAX;

// `line` without its word, a number above 0.
std::optional<int64_t> number_after(const std::string& line, std::string_view word) {
  if (!line.starts_with(word)) return std::nullopt;
  int64_t value = 0;
  const char* begin = line.data() + word.size();
  const char* end = line.data() + line.size();
  const auto parsed = std::from_chars(begin, end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value <= 0 || value > kMost) return std::nullopt;
  return value;
}

}  // namespace

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Service::Service(Endpoint endpoint, Log log, int64_t started_ns)
    : endpoint_(std::move(endpoint)), log_(std::move(log)), started_ns_(started_ns) {}

void Service::serve(int wake) {
  while (true) {
    const std::optional<Datagram> datagram = endpoint_.receive(-1, wake);
    if (datagram) {
      handle(*datagram, now_ns());
      continue;
    }
    pollfd over{wake, POLLIN, 0};
    if (::poll(&over, 1, 0) > 0) return;
  }
}

void Service::handle(const Datagram& datagram, int64_t now_ns) {
  const std::optional<Message> message = parse(datagram.bytes);
  if (!message) return;  // not of this protocol: whoever it was waits for nothing
  if (const auto* request = std::get_if<ConfigRequest>(&*message)) {
    handle_request(*request, datagram, now_ns);
  } else if (std::holds_alternative<Registration>(*message)) {
    endpoint_.send(registration_answer(1), datagram.from);
  } else {
    const std::string text = answer(std::get<Command>(*message), datagram.sender, now_ns);
    endpoint_.send(command_message(text), datagram.from);
  }
}

void Service::handle_request(const ConfigRequest& request, const Datagram& datagram, int64_t now_ns) {
  const size_t known = processes_.all().size();
  const std::string config = processes_.ask(request, datagram.sender, now_ns);
  if (processes_.all().size() > known)
    log_("process " + std::to_string(request.pids.front()) + " of user " + std::to_string(datagram.sender.uid) +
         " can be traced");
  const bool is_sent = endpoint_.send(config_answer(config), datagram.from);
  if (!is_sent || config.empty()) return;  // what was not sent it gets when it asks again
  processes_.delivered(request, datagram.sender);
  log_("process " + std::to_string(request.pids.front()) + " has fetched what it was asked for");
}

std::string Service::answer(const Command& command, const Sender& sender, int64_t now_ns) {
  const size_t end = command.text.find('\n');
  const std::string first = command.text.substr(0, end);
  if (first == "list") {
    processes_.forget(now_ns);
    std::string out;
    for (const auto& [pid, process] : processes_.all()) {
      if (out.size() > kMaxMessage / 2) return out + "and more\n";
      out += "process " + std::to_string(pid) + " " + std::to_string(process.own_pid) + " " +
             std::to_string(process.job) + "\n";
    }
    return out;
  }
  return give(first, end == std::string::npos ? "" : command.text.substr(end + 1), sender, now_ns);
}

std::string Service::give(const std::string& command, const std::string& config, const Sender& sender, int64_t now_ns) {
  const bool is_question = command.starts_with("who ");
  const std::string target = command.substr(is_question ? 4 : 0);
  const std::optional<int64_t> pid = number_after(target, "trigger "), job = number_after(target, "job ");
  if (!pid && !job) return "error: an unknown command\n";
  if (config.empty() != is_question || config.size() > kMaxConfig)
    return "error: a configuration of at most 8 KiB is missing\n";
  const Processes::Matches matches = job ? processes_.give_to_job(*job, config, sender, now_ns)
                                         : processes_.give(static_cast<int32_t>(*pid), config, sender, now_ns);
  if (matches.found.empty()) {
    if (matches.other_users) return "error: it belongs to another user\n";
    if (matches.busy) return "error: it has not yet fetched what it was asked before\n";
    const int64_t age_s = (now_ns - started_ns_) / 1'000'000'000;
    return "unknown: the daemon runs for " + std::to_string(age_s) + " s and knows " +
           std::to_string(processes_.all().size()) + " processes\n";
  }
  std::string out;
  for (const Process* process : matches.found) {
    if (out.size() < kMaxMessage / 2)
      out += "asked " + std::to_string(process->pid) + " " + std::to_string(process->own_pid) + "\n";
  }
  return out;
}

Result<std::string> ask_daemon(const std::string& command) {
  FL_TRY(Endpoint endpoint, Endpoint::ask());
  int waited_ms = 0;  // its queue may be full for a moment
  while (!endpoint.send_to_name(command_message(command), kEndpoint)) {
    if (errno != EAGAIN || waited_ms >= kSendMs) return Error{"no daemon answers"};
    waited_ms += 10;
    ::poll(nullptr, 0, 10);
  }
  const int64_t end_ns = now_ns() + kAnswerMs * int64_t{1'000'000};
  while (true) {
    const int64_t left_ms = (end_ns - now_ns()) / 1'000'000;
    if (left_ms <= 0) return Error{"the daemon of this machine does not understand firelane (dynolog, say)"};
    const std::optional<Datagram> datagram = endpoint.receive(static_cast<int>(left_ms));
    if (!datagram) continue;
    if (const std::optional<std::string> text = command_text(datagram->bytes)) return *text;
  }
}

}  // namespace firelane::daemon

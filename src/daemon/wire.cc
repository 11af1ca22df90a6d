#include "daemon/wire.h"

#include <cstring>

namespace firelane::daemon {
namespace {

constexpr size_t kTypeSize = 32;
constexpr size_t kRequestSize = 4 + 4 + 8;  // without its pids

template <typename T>
T take(std::string_view& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::string message(std::string_view type, std::string_view body) {
  std::string out(kHeadSize, '\0');
  const uint64_t size = body.size();
  std::memcpy(out.data(), &size, sizeof size);
  std::memcpy(out.data() + sizeof size, type.data(), type.size());
  return out.append(body);
}

struct Parts {
  std::string_view type, body;
};

std::optional<Parts> split(std::string_view datagram) {
  if (datagram.size() < kHeadSize || datagram.size() > kMaxMessage) return std::nullopt;
  const auto size = take<uint64_t>(datagram);
  const std::string_view type = datagram.substr(0, kTypeSize);
  datagram.remove_prefix(kTypeSize);
  if (size != datagram.size() || type.find('\0') == std::string_view::npos) return std::nullopt;
  return Parts{type.substr(0, type.find('\0')), datagram};
}

}  // namespace

std::optional<Message> parse(std::string_view datagram) {
  const std::optional<Parts> parts = split(datagram);
  if (!parts) return std::nullopt;
  std::string_view body = parts->body;
  if (parts->type == "ctxt" && body.size() == 4 + 4 + 8) {
    Registration out;
    out.gpu = take<int32_t>(body);
    out.pid = take<int32_t>(body);
    out.job = take<int64_t>(body);
    return out;
  }
  if (parts->type == "req" && body.size() >= kRequestSize) {
    ConfigRequest out;
    out.kinds = take<int32_t>(body);
    const auto count = take<int32_t>(body);
    out.job = take<int64_t>(body);
    if (count <= 0 || static_cast<size_t>(count) != body.size() / 4 || body.size() % 4 != 0) return std::nullopt;
    while (!body.empty()) out.pids.push_back(take<int32_t>(body));
    return out;
  }
  if (parts->type == "firelane") return Command{std::string(body)};
  return std::nullopt;
}

std::string registration_answer(int32_t count) {
  return message("ctxt", std::string_view(reinterpret_cast<const char*>(&count), sizeof count));
}

std::string config_answer(std::string_view config) { return message("req", config); }

std::string command_message(std::string_view text) { return message("firelane", text); }

std::optional<std::string> command_text(std::string_view datagram) {
  const std::optional<Parts> parts = split(datagram);
  if (!parts || parts->type != "firelane") return std::nullopt;
  return std::string(parts->body);
}

}  // namespace firelane::daemon

// Anybody on the machine may send firelane daemon a datagram: its parser, and what it does with messages. The input is
// a sequence of datagrams, each with two bytes of length, from senders of different users.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/endpoint.h"
#include "daemon/service.h"
#include "daemon/wire.h"

namespace {

using namespace firelane::daemon;

// A socket of this process's own name, on which nobody asks: answers go to an address that does not exist.
Service make_service() {
  auto endpoint = Endpoint::ask();
  if (!endpoint.ok()) std::abort();
  return {std::move(endpoint).value(), [](const std::string&) {}, 0};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Service service = make_service();
  int64_t now_ns = 0;
  while (size >= 2) {
    const size_t wanted = data[0] | size_t{data[1]} << 8;
    const size_t length = std::min(wanted, size - 2);
    Datagram datagram;
    datagram.bytes.assign(reinterpret_cast<const char*>(data) + 2, length);
    datagram.sender = {.pid = static_cast<int32_t>(length % 7), .uid = static_cast<uint32_t>(length % 3)};
    service.handle(datagram, now_ns);
    (void)command_text(datagram.bytes);
    now_ns += static_cast<int64_t>(length) * 100'000'000;  // long enough for some to be forgotten
    data += 2 + length;
    size -= 2 + length;
  }
  if (service.processes().all().size() > Processes::kMost) std::abort();
  return 0;
}

// The daemon: answers processes that ask for a configuration, and `firelane trigger`, which gives them one.
//
//   trigger 4711          that process and those below it      then lines of Kineto's configuration
//   job 1234              the processes of a Slurm job
//   who trigger 4711      the same, without asking anything of them
//   list
//
// The answer to the first two is "asked PID OWN_PID", a line for each process (OWN_PID is what it has in its own
// container, and in the name of its file), to the last "process PID OWN_PID JOB"; or one line "error: ...".
#pragma once

#include <functional>
#include <string>

#include "daemon/endpoint.h"
#include "daemon/processes.h"

namespace firelane::daemon {

class Service {
 public:
  using Log = std::function<void(const std::string& line)>;

  Service(Endpoint endpoint, Log log, int64_t started_ns);

  // Until `wake` can be read.
  void serve(int wake);
  // One datagram, and what is sent back.
  void handle(const Datagram& datagram, int64_t now_ns);

  const Processes& processes() const { return processes_; }

 private:
  void handle_request(const ConfigRequest& request, const Datagram& datagram, int64_t now_ns);
  std::string answer(const Command& command, const Sender& sender, int64_t now_ns);
  std::string give(const std::string& command, const std::string& config, const Sender& sender, int64_t now_ns);

  Endpoint endpoint_;
  Log log_;
  int64_t started_ns_;
  Processes processes_;
};

// Sends a command to the daemon of this machine and waits for its answer.
Result<std::string> ask_daemon(const std::string& command);

int64_t now_ns();  // of a clock that does not jump

}  // namespace firelane::daemon

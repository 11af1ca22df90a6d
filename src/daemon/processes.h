// The processes that ask this daemon for something to do, and what they are to do.
//
// A process is who the kernel says that it is (the sender of the datagram, by the daemon's process ids, also when it
// runs in a container with others); what it says of itself is only used where the kernel does not know. A request for
// a process id means that process and those below it: the workers of a launcher, too. Only its own user, or root, may
// ask something of a process.
//
// Pure: the caller brings the time and says what the kernel knows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/wire.h"

namespace firelane::daemon {

// Who sent a datagram, by the kernel; pid 0: a process of a namespace that this one does not see.
struct Sender {
  int32_t pid = 0;
  uint32_t uid = UINT32_MAX;  // not known: nobody
};

struct Process {
  int32_t pid = 0;            // as the kernel says, in the daemon's namespace
  int32_t own_pid = 0;        // as it says itself: differs in a container; trace files are named by it
  std::vector<int32_t> pids;  // its parents, as it says
  int64_t job = 0;
  uint32_t uid = 0;
  int64_t seen_ns = 0;
  std::string config;  // that it gets when it asks next
};

class Processes {
 public:
  static constexpr size_t kMost = 4096;
  static constexpr int64_t kForgetAfter = 60'000'000'000;  // ns without a word

  // A process asks. What it gets; empty: nothing. The config is its own until delivered() or the next question.
  std::string ask(const ConfigRequest& request, const Sender& sender, int64_t now_ns);
  // Its answer was sent.
  void delivered(const ConfigRequest& request, const Sender& sender);

  struct Matches {
    std::vector<const Process*> found;
    bool other_users = false;  // there are processes, of somebody else
    bool busy = false;         // one has not yet fetched what it was asked before
  };
  // Gives the config to `pid` and those below it; in a job, to all of it.
  Matches give(int32_t pid, const std::string& config, const Sender& asker, int64_t now_ns);
  Matches give_to_job(int64_t job, const std::string& config, const Sender& asker, int64_t now_ns);

  const std::map<int32_t, Process>& all() const { return processes_; }
  void forget(int64_t now_ns);

 private:
  template <typename Is>
  Matches give_where(const Is& is, const std::string& config, const Sender& asker, int64_t now_ns);

  std::map<int32_t, Process> processes_;
};

}  // namespace firelane::daemon

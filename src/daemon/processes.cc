#include "daemon/processes.h"

#include <algorithm>

namespace firelane::daemon {
namespace {

int32_t pid_of(const ConfigRequest& request, const Sender& sender) {
  return sender.pid > 0 ? sender.pid : request.pids.front();
}

}  // namespace

std::string Processes::ask(const ConfigRequest& request, const Sender& sender, int64_t now_ns) {
  const int32_t pid = pid_of(request, sender);
  if (!processes_.contains(pid) && processes_.size() >= kMost) {
    forget(now_ns);
    if (processes_.size() >= kMost) {
      processes_.erase(
          std::ranges::min_element(processes_, {}, [](const auto& entry) { return entry.second.seen_ns; }));
    }
  }
  Process& process = processes_[pid];
  if (process.uid != sender.uid) process.config.clear();  // the id is somebody else's by now
  process.pid = pid;
  process.own_pid = request.pids.front();
  process.pids = request.pids;
  process.job = request.job;
  process.uid = sender.uid;
  process.seen_ns = now_ns;
  return (request.kinds & kActivities) != 0 ? process.config : std::string();
}

void Processes::delivered(const ConfigRequest& request, const Sender& sender) {
  const auto found = processes_.find(pid_of(request, sender));
  if (found != processes_.end() && (request.kinds & kActivities) != 0) found->second.config.clear();
}

template <typename Is>
Processes::Matches Processes::give_where(const Is& is, const std::string& config, const Sender& asker, int64_t now_ns) {
  forget(now_ns);
  Matches out;
  for (auto& [pid, process] : processes_) {
    if (!is(process)) continue;
    if (asker.uid != process.uid && asker.uid != 0) {
      out.other_users = true;
    } else if (!process.config.empty()) {
      out.busy = true;
    } else {
      process.config = config;
      out.found.push_back(&process);
    }
  }
  return out;
}

Processes::Matches Processes::give(int32_t pid, const std::string& config, const Sender& asker, int64_t now_ns) {
  const auto is_below = [&](const Process& p) {
    return p.pid == pid || std::ranges::find(p.pids, pid) != p.pids.end();
  };
  return give_where(is_below, config, asker, now_ns);
}

Processes::Matches Processes::give_to_job(int64_t job, const std::string& config, const Sender& asker, int64_t now_ns) {
  return give_where([&](const Process& p) { return job != 0 && p.job == job; }, config, asker, now_ns);
}

void Processes::forget(int64_t now_ns) {
  std::erase_if(processes_, [&](const auto& entry) { return now_ns - entry.second.seen_ns > kForgetAfter; });
}

}  // namespace firelane::daemon

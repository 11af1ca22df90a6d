// The viewer's protocol without HTTP: requests in, answers out. docs/viewer-protocol.md is the other half of this room.
//
//   Api api({"a.json.gz", "b.lane"}, load);   // loads on a thread of its own, one after another
//   Answer a = api.answer(parse_target("/api/t/0/lanes").value());
//
// answer() may be called by any number of threads at once.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "serve/answer.h"
#include "serve/request.h"
#include "serve/trace.h"

namespace firelane::serve {

using Progress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;
using Loader = std::function<Result<Model>(const std::string& path, const Progress& progress)>;

inline constexpr size_t kMaxBodyBytes = size_t{64} << 10;

// Answers that cost much and do not change, the latest few of them. A second request for one that is being made waits.
class AnswerCache {
 public:
  Answer get(const std::string& key, const std::function<Answer()>& make);

 private:
  struct Entry {
    std::once_flag made;
    Answer answer;
    size_t bytes = 0;  // as counted in bytes_
  };
  // Called when the answer is made: from now on it counts, and old ones may have to go.
  void count(const std::string& key, const std::shared_ptr<Entry>& entry);
  void drop(std::string key);  // REQUIRES: mutex_ is held, the key is there

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  std::list<std::string> order_;  // oldest first
  size_t bytes_ = 0;
};

class Api {
 public:
  // Loads in the background. `version` is what /api/traces says of the program.
  Api(std::vector<std::string> paths, Loader load, std::string version);
  // One trace that is there already.
  Api(std::shared_ptr<const Model> model, std::string version);
  Api(Model model, std::string version);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // A path that begins with "api". Never fails: what is wrong becomes a status and {"error"}.
  Answer answer(const Request& request);

  void wait_until_loaded();
  // nullptr while it is not ready, or could not be loaded.
  const ServedTrace* trace(size_t id) const;

 private:
  enum class State : uint8_t { kLoading, kReady, kFailed };
  struct Slot {
    std::string path;
    std::atomic<State> state{State::kLoading};
    std::atomic<uint64_t> bytes_done{0};
    std::atomic<uint64_t> bytes_total{0};
    std::string error;                         // set before kFailed
    std::unique_ptr<const ServedTrace> trace;  // set before kReady
    AnswerCache cache;
  };

  void load_all(const Loader& load);
  Answer list_traces(const Request& request);
  // Until trace `id` is loaded, or could not be; not longer than `most`.
  void wait_for(size_t id, std::chrono::milliseconds most);
  void set_state(Slot& slot, State state);
  Answer about_trace(const Request& request);

  std::string version_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::atomic<bool> stop_{false};
  std::mutex state_mutex_;  // of a change of a slot's state, for those who wait for it
  std::condition_variable state_changed_;
  std::thread loading_;
};

}  // namespace firelane::serve

// The viewer's protocol without HTTP: requests in, answers out. docs/viewer-protocol.md is the other half of this room.
//
//   Api api(std::make_shared<TraceSet>(paths, load, prepare), version);
//   Answer a = api.answer(parse_target("/api/t/0/lanes").value());
//
// answer() may be called by any number of threads at once.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/model.h"
#include "serve/answer.h"
#include "serve/comparison.h"
#include "serve/job.h"
#include "serve/request.h"
#include "traces/studied_trace.h"
#include "traces/trace_set.h"

namespace firelane::serve {

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

// What a page needs of a trace at once: made before the trace counts as loaded.
void prepare(const StudiedTrace& trace);

class Api {
 public:
  // `version` is what /api/traces says of the program.
  Api(std::shared_ptr<const TraceSet> traces, std::string version, Comparison comparison = {});
  // One trace that is there already.
  Api(Model model, std::string version);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // A path that begins with "api". Never fails: what is wrong becomes a status and {"error"}.
  Answer answer(const Request& request);

  // The traces are those of the ranks of a job: the page starts with it. Call before the first answer().
  void serve_job(ServedJob job);

  const TraceSet& traces() const { return *traces_; }
  // nullptr: the traces are no job.
  const ServedJob* job() const { return job_ ? &*job_ : nullptr; }
  const Comparison& comparison() const { return comparison_; }

 private:
  Answer list_traces(const Request& request);
  Answer about_trace(const Request& request);
  Answer about_set(const Request& request);

  std::shared_ptr<const TraceSet> traces_;
  std::string version_;
  Comparison comparison_;
  std::vector<std::unique_ptr<AnswerCache>> caches_;  // one per trace
  AnswerCache of_set_;
  std::optional<ServedJob> job_;
};

}  // namespace firelane::serve

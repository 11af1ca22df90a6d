#include "serve/api.h"

#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <string_view>

#include "advise/light_note.h"
#include "serve/handlers.h"

namespace firelane::serve {

namespace {

constexpr int64_t kMostWaitMs = 1000;
constexpr std::chrono::seconds kReloadWait(10);
constexpr size_t kCachedAnswers = 200;
constexpr size_t kCachedBytes = size_t{64} << 20;  // of all together

struct Route {
  std::string_view name;  // "tiles", "memory/curve"; "slice/" is followed by a name of its own
  Answer (*handle)(const ServedTrace& trace, const Request& request);
  bool keep;  // costs much and is asked for again
  std::string_view method = "GET";
};

constexpr std::array kRoutes = {
    Route{"light", light, true},
    Route{"overview", overview, true},
    Route{"diagnose", diagnosis, true},
    Route{"explain/", explain, false},
    Route{"report/", report, true},
    Route{"lanes", lanes, true},
    Route{"tiles", tiles, false},
    Route{"counters", counters, false},
    Route{"slice/", slice, false},
    Route{"range", range, false},
    Route{"search", search, false},
    Route{"find", find, false},
    Route{"gap", gap, false},
    Route{"flame", flame, true},
    Route{"memory/curve", memory_curve, true},
    Route{"memory/alive", memory_alive, false},
    Route{"memory/segments", memory_segments, false},
    Route{"sql", sql, false, "POST"},
};

// For all traces together. Each is a pane of the page, which it shows where /api/traces names it.
struct SetRoute {
  std::string_view name;
  Answer (*handle)(const TraceSet& traces, const Comparison& usual, const Request& request);
};

constexpr std::array kSetRoutes = {
    SetRoute{"compare", compared},
    SetRoute{"compare/flame", compared_flame},
    SetRoute{"runs", compared_runs},
};

// REQUIRES: a path of at least four parts: "api", "t", "0", NAME.
const Route* find_route(const Request& request) {
  if (request.path.size() > 5) return nullptr;
  std::string name = request.path[3];
  if (request.path.size() == 5) name += '/';
  for (const Route& route : kRoutes) {
    if (route.name == name || (request.path.size() == 5 && route.name == name + request.path[4])) return &route;
  }
  return nullptr;
}

void write_ids(JsonWriter& json, std::string_view name, const std::vector<size_t>& ids) {
  json.key(name).begin_array();
  for (const size_t id : ids) json.value(id);
  json.end_array();
}

// The panes that show traces together: those that this set has something for.
void write_panes(JsonWriter& json, const Comparison& comparison, bool is_job) {
  constexpr std::string_view kBy[] = {"file", "model", "batch"};
  const bool can_compare = !comparison.before.empty();
  json.key("panes").begin_array();
  if (is_job) json.value("ranks");
  if (can_compare) json.value("compare");
  json.end_array().key("first_pane");
  if (is_job) {
    json.value("ranks");
  } else if (can_compare && comparison.is_first) {
    json.value("compare");
  } else {
    json.null();
  }
  json.key("compare");
  if (!can_compare) {
    json.null();
    return;
  }
  json.begin_object();
  write_ids(json, "before", comparison.before);
  write_ids(json, "after", comparison.after);
  json.key("by");
  if (comparison.by) {
    json.value(kBy[static_cast<size_t>(*comparison.by)]);
  } else {
    json.null();
  }
  json.end_object();
}

std::string cache_key(const Request& request) {
  std::string key;
  for (const std::string& part : request.path) key += part + '\0';
  for (const auto& [name, value] : request.parameters) key += '\1' + name + '\0' + value;
  return key;
}

}  // namespace

Answer AnswerCache::get(const std::string& key, const std::function<Answer()>& make) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Entry>& known = entries_[key];
    if (known == nullptr) {
      known = std::make_shared<Entry>();
      order_.push_back(key);
    }
    entry = known;
    if (order_.size() > kCachedAnswers) drop(order_.front());
  }
  bool is_mine = false;
  std::call_once(entry->made, [&] {
    entry->answer = make();
    is_mine = true;
  });
  if (is_mine) count(key, entry);
  return entry->answer;
}

void AnswerCache::count(const std::string& key, const std::shared_ptr<Entry>& entry) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second != entry) return;
  if (!entry->answer.ok()) {
    drop(key);
    return;
  }
  entry->bytes = entry->answer.body.size();
  bytes_ += entry->bytes;
  while (bytes_ > kCachedBytes) drop(order_.front());
}

void AnswerCache::drop(std::string key) {
  const auto found = entries_.find(key);
  bytes_ -= found->second->bytes;
  entries_.erase(found);
  order_.remove(key);
}

void prepare(const StudiedTrace& trace) { ServedTrace(trace).timeline(); }

Api::Api(std::shared_ptr<const TraceSet> traces, std::string version, Comparison comparison)
    : traces_(std::move(traces)),
      version_(std::move(version)),
      comparison_(completed(std::move(comparison), traces_->size())) {
  for (size_t id = 0; id < traces_->size(); ++id) caches_.push_back(std::make_unique<AnswerCache>());
}

Api::Api(Model model, std::string version)
    : Api(std::make_shared<TraceSet>(std::make_shared<const StudiedTrace>(std::move(model))), std::move(version)) {}

// trace=ID&wait_ms=N: the page would like to hear of that trace once it is loaded, and of its progress after N ms.
Answer Api::list_traces(const Request& request) {
  Parameters wanted(request);
  const auto last = static_cast<int64_t>(traces_->size()) - 1;
  const int64_t wait_ms = wanted.integer("wait_ms", 0, 0, kMostWaitMs);
  if (const std::string* asked = request.find("trace"); asked != nullptr && *asked != "first" && last >= 0) {
    traces_->ask_for(static_cast<size_t>(wanted.integer("trace", 0, 0, last)));
  }
  if (wait_ms > 0 && last >= 0) {
    traces_->wait_for(static_cast<size_t>(wanted.integer("trace", 0, 0, last)), std::chrono::milliseconds(wait_ms));
  }
  if (!wanted.ok()) return bad_request(wanted);
  constexpr std::string_view kStates[] = {"loading", "ready", "failed", "unloaded"};
  JsonWriter json;
  json.begin_object().field("version", version_);
  write_panes(json, comparison_, job_.has_value());
  json.key("traces").begin_array();
  for (size_t id = 0; id < traces_->size(); ++id) {
    const TraceSet::Status status = traces_->status(id);
    json.begin_object().field("id", id).field("name", std::filesystem::path(traces_->path(id)).filename().string());
    json.field("state", kStates[static_cast<size_t>(status.state)]);
    json.field("bytes_done", status.bytes_done).field("bytes_total", status.bytes_total).key("error");
    if (status.state == TraceSet::State::kFailed) {
      json.value(status.error);
    } else {
      json.null();
    }
    json.end_object();
  }
  json.end_array().end_object();
  return json_answer(std::move(json));
}

Answer Api::about_trace(const Request& request) {
  size_t id = 0;
  constexpr std::string_view kLight = ".light";
  std::string_view text = request.path[2];
  const bool of_light = text.ends_with(kLight);
  if (of_light) text.remove_suffix(kLight.size());
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool is_number = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
  if (!is_number || id >= traces_->size()) return refusal(404, "no such trace; /api/traces lists them");
  const Route* route = find_route(request);
  if (route == nullptr) return refusal(404, "no such request; docs/viewer-protocol.md lists them");
  if (route->method != request.method) return refusal(405, "this request needs " + std::string(route->method));
  if (traces_->status(id).state == TraceSet::State::kUnloaded) {  // a page is still open on one that made room
    traces_->ask_for(id);
    traces_->wait_for(id, kReloadWait);
  }
  const TraceSet::Status status = traces_->status(id);
  if (status.state == TraceSet::State::kFailed) return refusal(409, status.error);
  const std::shared_ptr<const StudiedTrace> studied = traces_->trace(id);
  if (studied == nullptr) return refusal(409, "the trace is being loaded; /api/traces shows the progress");
  const StudiedTrace& timed = of_light ? advise::timed_trace(*studied) : *studied;
  if (of_light && &timed == studied.get()) return refusal(404, "this trace has no light steps");
  const ServedTrace trace(timed);
  if (!route->keep) return route->handle(trace, request);
  return caches_[id]->get(cache_key(request), [&] { return route->handle(trace, request); });
}

// Ranks of one job are not compared as runs are.
void Api::serve_job(ServedJob job) {
  job_ = std::move(job);
  comparison_ = {};
}

Answer Api::about_set(const Request& request) {
  const std::vector<std::string>& path = request.path;
  const std::string name = path.size() == 3 ? path[1] + "/" + path[2] : path[1];
  for (const SetRoute& route : kSetRoutes) {
    if (route.name != name || path.size() > 3) continue;
    if (request.method != "GET") return refusal(405, "this request needs GET");
    return of_set_.get(cache_key(request), [&] { return route.handle(*traces_, comparison_, request); });
  }
  return refusal(404, "no such request; docs/viewer-protocol.md lists them");
}

Answer Api::answer(const Request& request) {
  if (request.body.size() > kMaxBodyBytes) return refusal(413, "the body is larger than 64 KiB");
  const std::vector<std::string>& path = request.path;
  if (path.size() < 2 || path[0] != "api") return refusal(404, "no such page");
  if (path[1] == "traces" && path.size() == 2) {
    return request.method == "GET" ? list_traces(request) : refusal(405, "this request needs GET");
  }
  if (path[1] == "t" && path.size() >= 4) return about_trace(request);
  if (job_ && path[1] == "ranks" && path.size() == 3) {
    return request.method == "GET" ? about_job(*job_, request) : refusal(405, "this request needs GET");
  }
  return about_set(request);
}

}  // namespace firelane::serve

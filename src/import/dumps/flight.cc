#include "import/dumps/flight.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "import/decompress.h"
#include "import/distributed.h"
#include "import/dumps/document_json.h"
#include "import/dumps/frames.h"
#include "import/pickle/unpickle.h"
#include "model/collectives.h"

namespace firelane::importer {

namespace {

constexpr size_t kMostListBytes = 4096;  // of sizes and types of one entry
constexpr size_t kMostGroups = 65'536;

// The number that a file's name ends with, before its suffix: nccl_trace_rank_3, dump-17.json.
int64_t rank_in_name(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view suffix : {".gz", ".zst", ".json", ".pickle", ".pkl"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  int64_t rank = kNoNumber;
  const auto [end, error] = std::from_chars(name.data() + begin, name.data() + name.size(), rank);
  return error == std::errc() && rank < INT32_MAX ? rank : kNoNumber;
}

class FlightReader {
 public:
  FlightReader(const Document& document, const std::string& path) : d_(document), frames_(document, log_.strings) {
    log_.path = path;
  }

  FlightLog run() {
    log_.version = d_.text(field("version"));
    log_.nccl_version = d_.text(field("comm_lib_version"));
    if (log_.nccl_version.empty()) log_.nccl_version = d_.text(field("nccl_version"));
    read_groups(field("pg_config"), field("pg_status"));
    const Value entries = field("entries");
    log_.entries.reserve(std::min(d_.size(entries), d_.container_count()));
    std::vector<bool> used(d_.container_count(), false);
    d_.each(entries, [&](Value entry) {
      if (d_.type(entry) != ValueType::kDict || used[d_.container(entry)] || !add_entry(entry)) {
        ++log_.malformed;
        return true;
      }
      used[d_.container(entry)] = true;
      return true;
    });
    log_.rank = integer(field("rank"));
    if (log_.rank == kNoNumber) log_.rank = rank_in_groups(rank_in_name(log_.path));
    return std::move(log_);
  }

 private:
  // A number in a name may be anything ("h200.pickle"): it is the rank only of a member of some group. A job of one
  // rank needs no name for it.
  int64_t rank_in_groups(int64_t named) const {
    std::set<int64_t> members;
    for (const FlightGroup& group : log_.groups) members.insert(group.ranks.begin(), group.ranks.end());
    if (members.empty() || members.contains(named)) return named;
    return members.size() == 1 ? *members.begin() : kNoNumber;
  }

  Value field(std::string_view key) const { return Field(d_, key).of(d_.root); }

  // JSON has some numbers as texts.
  int64_t integer(Value value) const {
    if (const std::optional<int64_t> number = d_.integer(value)) return *number;
    const std::string_view text = d_.text(value);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && !text.empty() ? number : kNoNumber;
  }
  // None in the pickle is 0 in the JSON.
  int64_t time(Value value) const {
    const int64_t ns = integer(value);
    return ns > 0 && ns < kMaxTimeNs ? ns : kNoNumber;
  }

  void read_groups(Value config, Value status) {
    const Field name(d_, "name"), description(d_, "desc"), ranks(d_, "ranks"), enqueued(d_, "last_enqueued_collective"),
        started(d_, "last_started_collective"), completed(d_, "last_completed_collective");
    d_.each_pair(config, [&](Value key, Value group) {
      FlightGroup out{.name = std::string(d_.text(name.of(group))),
                      .description = std::string(d_.text(description.of(group)))};
      if (out.name.empty()) out.name = d_.text(key);
      RankList list = parse_ranks(d_.text(ranks.of(group)));
      d_.each(ranks.of(group), [&](Value rank) {
        list.ranks.push_back(integer(rank));
        return list.ranks.size() < kMostGroups;
      });
      if (!list.is_cut) out.ranks = std::move(list.ranks);
      const Value own_status = status_of(status, out.name);
      out.last_enqueued = integer(enqueued.of(own_status));
      out.last_started = integer(started.of(own_status));
      out.last_completed = integer(completed.of(own_status));
      log_.groups.push_back(std::move(out));
      return log_.groups.size() < kMostGroups;
    });
  }
  Value status_of(Value status, std::string_view group) const {
    return d_.type(status) == ValueType::kDict ? Field(d_, group).of(status) : kNoneValue;
  }

  bool add_entry(Value entry) {
    const std::string_view profiling_name = d_.text(profiling_name_.of(entry));
    if (profiling_name.empty()) return false;
    FlightEntry out{.record_id = integer(record_id_.of(entry)),
                    .collective_sequence = integer(collective_sequence_.of(entry)),
                    .p2p_sequence = integer(p2p_sequence_.of(entry)),
                    .op_id = integer(op_id_.of(entry)),
                    .created_ns = time(created_.of(entry)),
                    .started_ns = time(started_.of(entry)),
                    .completed_ns = time(completed_.of(entry)),
                    .state = comm_state_named(d_.text(state_.of(entry))),
                    .is_p2p = d_.truth(is_p2p_.of(entry)).value_or(false),
                    .is_retired = d_.truth(retired_.of(entry)).value_or(false)};
    // Before version 2.3 there was one sequence for both.
    if (out.collective_sequence == kNoNumber) out.collective_sequence = integer(sequence_.of(entry));
    const std::string_view collective = collective_named(profiling_name).collective;
    out.collective = log_.strings.intern(collective.empty() ? profiling_name : collective);
    size_t at = 0;
    d_.each(process_group_.of(entry), [&](Value text) {
      (at == 0 ? out.group : out.group_description) = log_.strings.intern(d_.text(text));
      return ++at < 2;
    });
    if (out.group == kNoString) {
      const int64_t id = integer(group_id_.of(entry));
      if (id != kNoNumber) out.group = log_.strings.intern(std::to_string(id));
    }
    const auto list = [&](const Field& of) {
      const Value value = of.of(entry);
      return d_.is_none(value) ? kNoString : log_.strings.intern(document_json(d_, value, kMostListBytes));
    };
    out.input_sizes = list(input_sizes_);
    out.output_sizes = list(output_sizes_);
    out.input_dtypes = list(input_dtypes_);
    out.output_dtypes = list(output_dtypes_);
    out.place = frames_.stack_of(stack_.of(entry)).place;
    log_.entries.push_back(out);
    return true;
  }

  const Document& d_;
  FlightLog log_;
  Frames frames_;
  const Field record_id_{d_, "record_id"}, group_id_{d_, "pg_id"}, process_group_{d_, "process_group"},
      collective_sequence_{d_, "collective_seq_id"}, p2p_sequence_{d_, "p2p_seq_id"}, sequence_{d_, "seq_id"},
      op_id_{d_, "op_id"}, profiling_name_{d_, "profiling_name"}, created_{d_, "time_created_ns"},
      started_{d_, "time_discovered_started_ns"}, completed_{d_, "time_discovered_completed_ns"}, state_{d_, "state"},
      retired_{d_, "retired"}, is_p2p_{d_, "is_p2p"}, input_sizes_{d_, "input_sizes"},
      output_sizes_{d_, "output_sizes"}, input_dtypes_{d_, "input_dtypes"}, output_dtypes_{d_, "output_dtypes"},
      stack_{d_, "frames"};
};

Value value_of_json(const simdjson::dom::element& element, Document& out) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::ARRAY: {
      std::vector<Value> items;
      const simdjson::dom::array array = element.get_array().value_unsafe();  // the result ends before a loop over it
      for (const simdjson::dom::element item : array) items.push_back(value_of_json(item, out));
      const Value list = out.new_list();
      out.append(list, items);
      return list;
    }
    case element_type::OBJECT: {
      std::vector<Value> pairs;
      const simdjson::dom::object object = element.get_object().value_unsafe();
      for (const auto& [key, item] : object) {
        pairs.push_back(out.of_text(key));
        pairs.push_back(value_of_json(item, out));
      }
      const Value dict = out.new_dict();
      out.set_items(dict, pairs);
      return dict;
    }
    case element_type::INT64: return out.of_integer(element.get_int64().value_unsafe());
    case element_type::UINT64: return out.of_huge_integer();
    case element_type::DOUBLE: return out.of_real(element.get_double().value_unsafe());
    case element_type::STRING: return out.of_text(element.get_string().value_unsafe());
    case element_type::BOOL: return Document::of_truth(element.get_bool().value_unsafe());
    default: return kNoneValue;
  }
}

}  // namespace

bool is_flight_log(const Document& document) {
  const auto has = [&](std::string_view key) { return !document.is_none(Field(document, key).of(document.root)); };
  return has("entries") && (has("version") || has("pg_config") || has("nccl_version"));
}

bool may_be_flight_json(std::string_view begin) {
  std::string text;
  for (const char c : begin) {
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') text += c;
  }
  const auto fits = [&](std::string_view key) {
    return key.starts_with(text) || std::string_view(text).starts_with(key);
  };
  return text.size() >= 9 && (fits(R"({"comm_lib_version")") || fits(R"({"entries")") ||
                              fits(R"({"nccl_comm_state")") || fits(R"({"nccl_version")"));
}

FlightLog flight_log(const Document& document, const std::string& path) { return FlightReader(document, path).run(); }

Result<Document> document_of_json(std::string_view text, const std::string& name) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (const auto error = parser.parse(text.data(), text.size()).get(root); error != simdjson::SUCCESS)
    return Error{name + ": not valid JSON: " + simdjson::error_message(error)};
  Document document;
  document.root = value_of_json(root, document);
  return document;
}

RawTrace flight_rows(const FlightLog& log) {
  RawTrace raw;
  raw.info.format = "NCCL flight recorder";
  raw.info.origin = Origin::kFlightRecorder;
  RawPool& pool = raw.pools.emplace_back();
  RawPart& part = raw.parts.emplace_back();
  part.losses[Stat::kDumpEntryMalformed] += static_cast<uint64_t>(log.malformed);
  DistributedInfo& distributed = raw.info.distributed;
  distributed.present = true;
  distributed.backend = "nccl";
  distributed.rank = log.rank;
  distributed.nccl_version = log.nccl_version;
  for (const FlightGroup& group : log.groups) {
    distributed.groups.push_back({.name = group.name,
                                  .description = group.description,
                                  .backend = "nccl",
                                  .ranks = group.ranks,
                                  .size = group.ranks.empty() ? kNoNumber : static_cast<int64_t>(group.ranks.size())});
    const bool is_world = group.description == "default_pg" && !group.ranks.empty();
    if (is_world) distributed.world_size = static_cast<int64_t>(group.ranks.size());
  }
  int64_t last_ns = kMinTimeNs;
  for (const FlightEntry& entry : log.entries)
    last_ns = std::max({last_ns, entry.created_ns, entry.completed_ns == kNoNumber ? kMinTimeNs : entry.completed_ns});
  const StringId category = pool.strings.intern("user_annotation");
  std::map<StringId, LaneId> lanes;
  for (const FlightEntry& entry : log.entries) {
    const int64_t start_ns = entry.started_ns != kNoNumber ? entry.started_ns : entry.created_ns;
    if (start_ns == kNoNumber) {
      ++part.losses[Stat::kDumpEntryMalformed];
      continue;
    }
    const auto [lane, is_new] = lanes.try_emplace(entry.group);
    if (is_new) {
      lane->second = pool.lane(pool.text_id("NCCL flight recorder"), {.number = static_cast<int64_t>(lanes.size())});
      const std::string_view purpose = log.text(entry.group_description);
      const std::string name = "process group " + std::string(log.text(entry.group)) +
                               (purpose.empty() ? "" : " (" + std::string(purpose) + ")");
      part.lane_names.push_back(
          {.lane = lane->second, .what = LaneNameKind::kThreadName, .text = pool.strings.intern(name)});
    }
    // What has not ended was open when the dump was made.
    const int64_t end_ns = entry.completed_ns != kNoNumber ? entry.completed_ns : last_ns;
    const auto comm = static_cast<Row>(part.comm_details.size());
    const auto group = std::find_if(log.groups.begin(), log.groups.end(),
                                    [&](const FlightGroup& each) { return each.name == log.text(entry.group); });
    const auto words = [&](StringId text) { return pool.strings.intern(log.text(text)); };
    part.comm_details.push_back({.group_size = group != log.groups.end() && !group->ranks.empty()
                                                   ? static_cast<int64_t>(group->ranks.size())
                                                   : kNoNumber,
                                 .rank = log.rank,
                                 .sequence = entry.is_p2p ? entry.p2p_sequence : entry.collective_sequence,
                                 .collective = words(entry.collective),
                                 .dtype = words(entry.input_dtypes),
                                 .group_name = words(entry.group),
                                 .group_description = words(entry.group_description),
                                 .backend = CommBackend::kNccl,
                                 .state = entry.state});
    const auto detail = static_cast<Row>(part.op_details.size());
    part.op_details.push_back({.input_dims = words(entry.input_sizes),
                               .input_types = words(entry.input_dtypes),
                               .stack = words(entry.place),
                               .comm = comm});
    part.host_slices.push_back({.start_ns = start_ns,
                                .duration_ns = std::max<int64_t>(0, end_ns - start_ns),
                                .lane = lane->second,
                                .name = pool.strings.intern("nccl:" + std::string(log.text(entry.collective))),
                                .category = category,
                                .kind = HostKind::kAnnotation,
                                .detail = detail});
    ++part.event_count;
  }
  return raw;
}

}  // namespace firelane::importer

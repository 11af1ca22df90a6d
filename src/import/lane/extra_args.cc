#include "import/lane/extra_args.h"

#include <simdjson.h>

namespace firelane::importer {
namespace {

using Object = simdjson::dom::object;

int64_t number(const Object& args, std::string_view key) {
  int64_t value = 0;
  return args[key].get(value) == simdjson::SUCCESS ? value : kNoNumber;
}

// Ranks and split sizes are the text of a list ("[0, 1]", cut where long: "[0, ..., 255]"), in other versions a list.
StringId text(const Object& args, std::string_view key, RawPool& pool) {
  std::string_view value;
  if (args[key].get(value) == simdjson::SUCCESS) return pool.strings.intern(value);
  simdjson::dom::array list;
  if (args[key].get(list) != simdjson::SUCCESS) return kNoString;
  std::string joined;
  for (const simdjson::dom::element item : list) {
    joined += (joined.empty() ? "[" : ", ") + simdjson::minify(item);
  }
  return pool.strings.intern(joined.empty() ? "[]" : joined + "]");
}

}  // namespace

std::optional<RawComm> collective_of(std::string_view json, RawPool& pool) {
  simdjson::dom::parser parser;
  Object args;
  std::string_view name;
  if (parser.parse(json.data(), json.size()).get(args) != simdjson::SUCCESS) return std::nullopt;
  if (args["Collective name"].get(name) != simdjson::SUCCESS) return std::nullopt;
  return RawComm{.in_elements = number(args, "In msg nelems"),
                 .out_elements = number(args, "Out msg nelems"),
                 .group_size = number(args, "Group size"),
                 .global_rank_start = number(args, "Global rank start"),
                 .global_rank_stride = number(args, "Global rank stride"),
                 .rank = number(args, "Rank"),
                 .source_rank = number(args, "Src Rank"),
                 .destination_rank = number(args, "Dst Rank"),
                 .sequence = number(args, "Seq"),
                 .collective = pool.strings.intern(name),
                 .dtype = text(args, "dtype", pool),
                 .group_name = text(args, "Process Group Name", pool),
                 .group_description = text(args, "Process Group Description", pool),
                 .group_ranks = text(args, "Process Group Ranks", pool),
                 .in_split_sizes = text(args, "In split size", pool),
                 .out_split_sizes = text(args, "Out split size", pool)};
}

StringId object_of(std::string_view json, RawPool& pool) {
  simdjson::dom::parser parser;
  Object args;
  if (parser.parse(json.data(), json.size()).get(args) != simdjson::SUCCESS || args.size() == 0) return kNoString;
  return pool.strings.intern(simdjson::minify(args));
}

}  // namespace firelane::importer

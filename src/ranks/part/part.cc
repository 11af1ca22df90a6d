#include "ranks/part/part.h"

#include <algorithm>
#include <cctype>

namespace firelane::ranks {

namespace {

constexpr std::array<std::string_view, kCollectiveCount> kOpNames = {
    "unknown", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce",
    "gather",  "scatter",    "barrier",    "send",           "recv",       "send_recv"};

struct OpWord {
  std::string_view word;  // lower case, without _ and spaces
  Collective op;
};
// The first that is found decides: allreduce stands before reduce.
constexpr OpWord kOpWords[] = {
    {"allreducebarrier", Collective::kBarrier},
    {"barrier", Collective::kBarrier},
    {"reducescatter", Collective::kReduceScatter},
    {"allreduce", Collective::kAllReduce},
    {"allgather", Collective::kAllGather},
    {"alltoall", Collective::kAllToAll},
    {"broadcast", Collective::kBroadcast},
    {"sendrecv", Collective::kSendRecv},
    {"coalesced", Collective::kSendRecv},
    {"scatter", Collective::kScatter},
    {"gather", Collective::kGather},
    {"reduce", Collective::kReduce},
    {"recv", Collective::kRecv},
    {"receive", Collective::kRecv},
    {"send", Collective::kSend},
};

}  // namespace

std::string_view name_of(Collective op) { return kOpNames[static_cast<size_t>(op)]; }

Collective collective_named(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  for (const OpWord& each : kOpWords) {
    if (plain.find(each.word) != std::string::npos) return each.op;
  }
  return Collective::kUnknown;
}

bool synchronizes(Collective op) {
  return op == Collective::kAllReduce || op == Collective::kAllGather || op == Collective::kReduceScatter ||
         op == Collective::kAllToAll || op == Collective::kBarrier;
}

bool is_point_to_point(Collective op) {
  return op == Collective::kSend || op == Collective::kRecv || op == Collective::kSendRecv;
}

double bus_factor(Collective op, int64_t ranks) {
  if (ranks <= 1) return 0;
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (op) {
    case Collective::kAllReduce: return 2 * share;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll: return share;
    default: return 1;
  }
}

int64_t bytes_of_dtype(std::string_view dtype) {
  std::string plain(dtype);
  std::transform(plain.begin(), plain.end(), plain.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  const auto has = [&](std::string_view word) { return plain.find(word) != std::string::npos; };
  if (has("float8") || has("byte") || has("char") || has("bool") || has("int8")) return 1;
  if (has("half") || has("bfloat16") || has("float16") || has("short") || has("int16")) return 2;
  if (has("double") || has("long") || has("int64") || has("float64") || has("complexfloat")) return 8;
  if (has("float") || has("int")) return 4;
  return 0;
}

}  // namespace firelane::ranks

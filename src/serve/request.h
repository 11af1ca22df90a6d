// A request of the viewer, taken apart: /api/t/0/tiles?level=12&first=3 has the path {"api", "t", "0", "tiles"} and two
// parameters. Everything comes from outside, so that reading a parameter can fail: Parameters notes the first that
// does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace firelane::serve {

struct Request {
  std::string method = "GET";
  std::vector<std::string> path;
  std::vector<std::pair<std::string, std::string>> parameters;  // as they came; the first of a name counts
  std::string body;

  // nullptr when there is none of that name.
  const std::string* find(std::string_view name) const;
};

// Takes apart what stands in the first line of HTTP, with its %XX. An Error means that it is malformed.
Result<Request> parse_target(std::string_view target);

// Reads parameters and keeps the first complaint:
//
//   Parameters wanted(request);
//   const int64_t level = wanted.integer("level", 0, 0, kMaxLevel);
//   if (!wanted.ok()) return wanted.refusal();
class Parameters {
 public:
  explicit Parameters(const Request& request) : request_(request) {}

  // A number in [low, high]; without the parameter, `absent`.
  int64_t integer(std::string_view name, int64_t absent, int64_t low, int64_t high);
  double number(std::string_view name, double absent, double low, double high);
  bool truth(std::string_view name);  // 0 or 1; 0 when absent
  std::string text(std::string_view name, std::string_view absent = {});
  // One of `choices`, by its place; the first when absent.
  size_t choice(std::string_view name, const std::vector<std::string_view>& choices);
  // 1,2,3; at most `most` of them. Nothing when the parameter is absent.
  std::optional<std::vector<int64_t>> list(std::string_view name, size_t most, int64_t high);

  bool ok() const { return complaint_.empty(); }
  const std::string& complaint() const { return complaint_; }

 private:
  void complain(std::string_view name, std::string_view wanted);

  const Request& request_;
  std::string complaint_;
};

}  // namespace firelane::serve

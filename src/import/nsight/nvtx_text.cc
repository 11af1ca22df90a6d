#include "import/nsight/nvtx_text.h"

#include <algorithm>
#include <charconv>

namespace firelane::importer {

namespace {

// The number behind `key` in `text`; kNoNumber when there is none.
int64_t number_after(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return kNoNumber;
  int64_t number = 0;
  const char* const begin = text.data() + at + key.size();
  const auto parsed = std::from_chars(begin, text.data() + text.size(), number);
  return parsed.ec == std::errc{} ? number : kNoNumber;
}

}  // namespace

NvtxText read_nvtx_text(std::string_view text) {
  constexpr std::string_view kSequence = ", seq = ";
  constexpr std::string_view kOpId = ", op_id = ";
  constexpr std::string_view kSizes = ", sizes = ";
  NvtxText out{.name = text};
  const size_t end = std::min({text.find(kSequence), text.find(kOpId), text.find(kSizes)});
  if (end != std::string_view::npos) {
    out.name = text.substr(0, end);
    const std::string_view rest = text.substr(end);
    out.sequence_number = number_after(rest, kSequence);
    out.op_id = number_after(rest, kOpId);
    const size_t sizes = rest.find(kSizes);
    if (sizes != std::string_view::npos) {
      out.sizes = rest.substr(sizes + kSizes.size());
      const size_t next = out.sizes.find("], input_op_ids");
      if (next != std::string_view::npos) out.sizes = out.sizes.substr(0, next + 1);
    }
  }
  out.is_op = out.op_id != kNoNumber || out.sequence_number != kNoNumber || out.name.starts_with("aten::") ||
              out.name.starts_with("c10d::");
  return out;
}

std::string_view without_version(std::string_view api_name) {
  const size_t at = api_name.rfind("_v");
  if (at == std::string_view::npos || at + 2 >= api_name.size() || at == 0) return api_name;
  const std::string_view digits = api_name.substr(at + 2);
  const bool all_digits = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return all_digits ? api_name.substr(0, at) : api_name;
}

}  // namespace firelane::importer

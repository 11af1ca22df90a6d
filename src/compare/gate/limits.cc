#include <charconv>

#include "compare/gate/gate.h"

namespace firelane::compare {

namespace {

struct Scale {
  std::string_view unit;
  double factor;
};
constexpr Scale kTimes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Scale kSizes[] = {{"B", 1},    {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824.0},
                            {"KB", 1e3}, {"MB", 1e6},   {"GB", 1e9}};

template <size_t N>
const Scale* find_scale(const Scale (&scales)[N], std::string_view unit) {
  for (const Scale& scale : scales) {
    if (scale.unit == unit) return &scale;
  }
  return nullptr;
}

}  // namespace

std::vector<Limit> default_limits() {
  return {{"step_time", "3%"}, {"gpu_time", "3%"}, {"peak_memory", "5%"}, {"kernel_groups", "10%"}};
}

Result<ParsedLimit> parse_limit(const Limit& limit, Unit unit) {
  const std::string form = unit == Unit::kNs ? "3% or 25 ms" : unit == Unit::kBytes ? "5% or 20 GiB" : "5% or a number";
  const Error wrong{"limit of " + limit.figure + ": '" + limit.text + "' is not one; write " + form};
  ParsedLimit out;
  const char* begin = limit.text.data();
  const char* end = begin + limit.text.size();
  const auto parsed = std::from_chars(begin, end, out.value);
  if (parsed.ec != std::errc{} || out.value < 0) return wrong;
  std::string_view rest(parsed.ptr, static_cast<size_t>(end - parsed.ptr));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (rest == "%" && unit != Unit::kPercent) {
    out.relative = true;
    out.value /= 100;
    return out;
  }
  if (unit == Unit::kNs || unit == Unit::kBytes) {
    const Scale* scale = unit == Unit::kNs ? find_scale(kTimes, rest) : find_scale(kSizes, rest);
    if (scale == nullptr) return wrong;
    out.value *= scale->factor;
    return out;
  }
  if (!rest.empty() && rest != "%" && rest != "J") return wrong;
  return out;
}

}  // namespace firelane::compare

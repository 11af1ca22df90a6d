#include "import/json/json_args.h"

#include <algorithm>

#include "import/json/scan.h"

namespace firelane::importer {

namespace {
constexpr size_t kOneEventBytes = 1 << 14;
constexpr size_t kManyEventsBytes = 1 << 20;
}  // namespace

Result<std::string> JsonArgs::event_json(uint64_t source) const {
  std::string json;
  FL_TRY_VOID(visit_events({source}, [&](size_t, std::string_view text) { json = text; }));
  return json;
}

Result<void> JsonArgs::visit_events(const std::vector<uint64_t>& sources,
                                    const std::function<void(size_t index, std::string_view json)>& visit) const {
  std::string window;
  uint64_t window_start = 0;
  std::string event;
  for (size_t i = 0; i < sources.size(); ++i) {
    const uint64_t at = sources[i];
    if (at >= content_end_) return Error{"no event lies at byte " + std::to_string(at) + " of the trace"};
    size_t bytes = sources.size() == 1 ? kOneEventBytes : kManyEventsBytes;
    size_t end = kNotFound;
    size_t begin = 0;
    for (;;) {
      if (at >= window_start && at < window_start + window.size()) {
        begin = static_cast<size_t>(at - window_start);
        end = value_end(window, begin);
        if (end != kNotFound) break;
        if (window_start + window.size() >= content_end_) break;
        if (begin == 0) bytes *= 4;
      }
      window.resize(static_cast<size_t>(std::min<uint64_t>(bytes, content_end_ - at)));
      FL_TRY(const size_t got, source_->read_at(at, window.data(), window.size()));
      if (got == 0) return Error{"the trace file cannot be read again; open it once more"};
      window.resize(got);
      window_start = at;
    }
    if (end == kNotFound) return Error{"the event at byte " + std::to_string(at) + " is not whole"};
    event.assign(window, begin, end - begin);
    repair_text(event.data(), event.size());
    visit(i, event);
  }
  return {};
}

}  // namespace firelane::importer

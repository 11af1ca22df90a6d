// Shows events as they stand in the JSON file, read again when asked.
#pragma once

#include <memory>

#include "import/byte_source.h"
#include "model/model.h"

namespace firelane::importer {

class JsonArgs : public ArgSource {
 public:
  JsonArgs(std::shared_ptr<const ByteSource> source, uint64_t content_end)
      : source_(std::move(source)), content_end_(content_end) {}

  Result<std::string> event_json(uint64_t source) const override;
  Result<void> visit_events(const std::vector<uint64_t>& sources,
                            const std::function<void(size_t index, std::string_view json)>& visit) const override;

 private:
  std::shared_ptr<const ByteSource> source_;
  uint64_t content_end_;
};

}  // namespace firelane::importer

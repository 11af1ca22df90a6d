// What tests of .lane files share: a file that is a string.
#pragma once

#include <string>
#include <string_view>

#include "format/sink.h"

namespace firelane::format::test {

class StringSink final : public ByteSink {
 public:
  std::string write(std::string_view bytes) override {
    content += bytes;
    return {};
  }
  std::string name() const override { return "memory"; }
  std::string content;
};

}  // namespace firelane::format::test

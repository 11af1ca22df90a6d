// In a file of its own, as CMake compiles it for AVX2: on-demand chooses its kernel when it is compiled.
#include "raw_simdjson.h"

#include <simdjson.h>

#include <string_view>

#include "read_file.h"
#include "stopwatch.h"

namespace firelane::bench {

Iteration iterate_with_simdjson(const std::string& content) {
  const simdjson::padded_string padded(content);
  const Stopwatch watch;
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document = parser.iterate(padded);
  Iteration done;
  double sum = 0;
  size_t text = 0;
  for (simdjson::ondemand::object event : document["traceEvents"]) {
    ++done.events;
    for (auto field : event) {
      const simdjson::ondemand::raw_json_string key = field.key();
      if (key == "ts" || key == "dur") {
        sum += double(field.value());
      } else if (key == "name" || key == "cat") {
        text += std::string_view(field.value()).size();
      }
    }
  }
  done.seconds = watch.seconds();
  if (sum == 0 || text == 0) fail("the trace has no events");  // also keeps the loop from being optimised away
  return done;
}

}  // namespace firelane::bench

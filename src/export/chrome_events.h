// The events of a Chrome trace as text, one a line: commas, braces, times and ids.
#pragma once

#include <string>
#include <string_view>

#include "export/byte_sink.h"
#include "export/json_pairs.h"
#include "export/place.h"
#include "model/model.h"

namespace firelane::exporter {

class ChromeEvents {
 public:
  ChromeEvents(const Model& model, ByteSink& sink, const ExportPlace& place)
      : model_(model), sink_(sink), place_(place), first_(place.number == 0) {}

  // {"ph": "X", "cat": ..., "name": ..., "pid": ..., "tid": ..., "ts": ...
  std::string& begin(char phase, std::string_view category, std::string_view name) {
    out_ += first_ ? "\n{\"ph\": \"" : ",\n{\"ph\": \"";
    first_ = false;
    out_ += phase;
    out_ += '"';
    if (!category.empty()) text(", \"cat\": ", category);
    text(", \"name\": ", name);
    return out_;
  }
  void lane(LaneId lane) {
    const auto l = static_cast<size_t>(lane);
    process(model_.lanes.pid[l]);
    id(", \"tid\": ", model_.lanes.tid[l]);
  }
  // Ranks of different machines have processes of the same number.
  void process(TraceId pid) {
    if (place_.is_alone()) return id(", \"pid\": ", pid);
    if (pid.number == kNoNumber) return text(", \"pid\": ", place_.name + " " + std::string(model_.text(pid.text)));
    number(", \"pid\": ", place_.number * kMostProcesses + (pid.number & (kMostProcesses - 1)));
  }
  void id(std::string_view key, const TraceId& value) {
    if (value.number != kNoNumber) {
      out_ += key;
      append_number(out_, value.number);
    } else {
      text(key, model_.text(value.text));
    }
  }
  void text(std::string_view key, std::string_view value) {
    out_ += key;
    append_json_text(out_, value);
  }
  void number(std::string_view key, int64_t value) {
    out_ += key;
    append_number(out_, value);
  }
  // Microseconds with three decimals: exactly the nanoseconds.
  void time(std::string_view key, int64_t ns) {
    out_ += key;
    const auto magnitude = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
    if (ns < 0) out_ += '-';
    append_number(out_, magnitude / 1000);
    const auto rest = static_cast<unsigned>(magnitude % 1000);
    out_ += '.';
    out_ += static_cast<char>('0' + rest / 100);
    out_ += static_cast<char>('0' + rest / 10 % 10);
    out_ += static_cast<char>('0' + rest % 10);
  }
  // A time of the model, which counts from the start of the trace.
  void at(int64_t time_ns) { time(", \"ts\": ", in_file(time_ns)); }
  void lasting(int64_t start_ns, int64_t duration_ns) {
    time(", \"dur\": ", in_file(start_ns + duration_ns) - in_file(start_ns));
  }
  void end() {
    out_ += '}';
    if (out_.size() >= kFlushBytes) flush();
  }
  void flush() {
    sink_.write(out_);
    out_.clear();
  }
  std::string& out() { return out_; }

 private:
  static constexpr size_t kFlushBytes = 1 << 18;
  static constexpr int64_t kMostProcesses = int64_t{1} << 22;  // Linux numbers no more
  int64_t in_file(int64_t time_ns) const { return place_.time ? place_.time(time_ns) : model_.info.start_ns + time_ns; }

  const Model& model_;
  ByteSink& sink_;
  const ExportPlace& place_;
  std::string out_;
  bool first_;
};

}  // namespace firelane::exporter

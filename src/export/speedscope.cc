#include "export/speedscope.h"

#include <string>
#include <vector>

#include "describe/lane_name.h"
#include "export/json_pairs.h"
#include "export/lane_tracks.h"

namespace firelane::exporter {

namespace {

class SpeedscopeExport {
 public:
  SpeedscopeExport(const Model& model, ByteSink& sink) : model_(model), sink_(sink) {}

  void run() {
    out_ = "{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\", \"exporter\": \"firelane\"";
    if (!model_.info.path.empty()) {
      out_ += ", \"name\": ";
      append_json_text(out_, model_.info.path);
    }
    write_frames();
    out_ += ",\n\"profiles\": [";
    for (uint32_t lane = 0; lane < model_.lanes.size() && !sink_.failed(); ++lane) {
      write_lane(LaneId{lane}, model_.host_slices, model_.lanes.host_begin[lane], model_.lanes.host_end[lane]);
      write_lane(LaneId{lane}, model_.device_slices, model_.lanes.device_begin[lane], model_.lanes.device_end[lane]);
    }
    out_ += "]\n}\n";
    sink_.write(out_);
  }

 private:
  // One frame for each name, in the order of first use.
  void write_frames() {
    frame_of_.assign(model_.strings.size(), kNoRow);
    out_ += ",\n\"shared\": {\"frames\": [";
    Row next = 0;
    const auto add = [&](const Cells<StringId>& names) {
      for (const StringId name : names) {
        Row& frame = frame_of_[static_cast<uint32_t>(name)];
        if (frame != kNoRow) continue;
        frame = next++;
        out_ += frame == 0 ? "\n{\"name\": " : ",\n{\"name\": ";
        append_json_text(out_, model_.text(name));
        out_ += '}';
        flush_when_full();
      }
    };
    add(model_.host_slices.name);
    add(model_.device_slices.name);
    out_ += "]}";
  }

  // A profile must be written in one piece, so each track is a pass over its own events.
  template <typename Slices>
  void write_lane(LaneId lane, const Slices& slices, Row first, Row last) {
    if (first == last) return;
    std::vector<std::vector<Edge>> tracks;
    const auto add = [&](size_t track, Edge edge) {
      if (track == tracks.size()) tracks.emplace_back();
      tracks[track].push_back(edge);
    };
    split_into_tracks(
        slices, first, last, [&](size_t track, Row row) { add(track, {slices.start_ns[row], slices.name[row], 'O'}); },
        [&](size_t track, Row row) { add(track, {slices.end_ns(row), slices.name[row], 'C'}); });
    for (size_t track = 0; track < tracks.size(); ++track)
      write_profile(describe::track_name(model_, lane, track), tracks[track]);
  }

  struct Edge {
    int64_t at_ns;
    StringId name;
    char type;  // O open, C close
  };

  void write_profile(const std::string& name, const std::vector<Edge>& edges) {
    out_ += first_profile_ ? "\n" : ",\n";
    first_profile_ = false;
    out_ += "{\"type\": \"evented\", \"name\": ";
    append_json_text(out_, name);
    out_ += ", \"unit\": \"nanoseconds\", \"startValue\": ";
    append_number(out_, edges.front().at_ns);
    out_ += ", \"endValue\": ";
    append_number(out_, edges.back().at_ns);
    out_ += ", \"events\": [";
    for (const Edge& edge : edges) {
      out_ += &edge == &edges.front() ? "\n{\"type\": \"" : ",\n{\"type\": \"";
      out_ += edge.type;
      out_ += "\", \"frame\": ";
      append_number(out_, frame_of_[static_cast<uint32_t>(edge.name)]);
      out_ += ", \"at\": ";
      append_number(out_, edge.at_ns);
      out_ += '}';
      flush_when_full();
    }
    out_ += "]}";
  }

  void flush_when_full() {
    if (out_.size() < kFlushBytes) return;
    sink_.write(out_);
    out_.clear();
  }

  const Model& model_;
  ByteSink& sink_;
  std::string out_;
  std::vector<Row> frame_of_;  // by StringId
  bool first_profile_ = true;
};

}  // namespace

void export_speedscope(const Model& model, ByteSink& sink) { SpeedscopeExport(model, sink).run(); }

}  // namespace firelane::exporter

// What the verbs that record share: which steps, into which file, with which of the recorder's options.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "cli/flags.h"
#include "format/record_options.h"

namespace firelane::cli {

inline constexpr const char* kDefaultRecording = "trace.lane";

struct RecordingArgs {
  std::string output = kDefaultRecording;
  bool force = false;
  int64_t steps = 5;
  int64_t light = -1;        // below 0: some with a GPU, none without
  std::string sample;        // "true": stacks, meanwhile
  double sample_rate = 200;  // samples per second
  int64_t wait = 3;
  int64_t warmup = 1;
  int64_t after = 3;
  struct Option {
    bool wanted = false;    // --stacks
    bool left_out = false;  // --no-cuda
  };
  std::array<Option, format::kRecordOptions.size()> options{};
  bool always = false;  // the whole job within a budget: only what is asked for
  std::string metrics;  // of --metrics: "true", or CUPTI's names by commas
  std::string metric_interval = "1ms";
};

struct RecordingFile {
  std::string path;        // understood by other processes, with other working folders
  uint64_t old_inode = 0;  // of the file that the recording replaces once it is complete; 0: none
};

// -o, --force and how many steps of which kind.
void add_recording_flags(Flags& flags, RecordingArgs& args, const std::string& steps_help,
                         const std::string& output_help);
// A word behind --metrics or --sample that is meant as its value, and told so instead of being run: --metrics LIST is
// --metrics=LIST.
void join_values(std::vector<std::string>& arguments);
// One flag for each of the recorder's options.
void add_recorder_options(Flags& flags, RecordingArgs& args);

Result<RecordingFile> find_recording_file(const RecordingArgs& args);

// The fields of firelane._auto.Plan that these args decide, into an object that is open.
void add_recording(JsonWriter& json, const RecordingArgs& args, const RecordingFile& file);

}  // namespace firelane::cli

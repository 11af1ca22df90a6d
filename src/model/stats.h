// The list of everything a trace can lack: each thing that was skipped, dropped,
// repaired or left unlinked has a name, a severity and a remedy. Readers count,
// `firelane info` prints. Add a line to kStats and a value to Stat, in one order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace firelane {

enum class Severity : uint8_t {
  kInfo,      // normal in such traces; answers stay right
  kWarning,   // something was repaired or looks wrong; answers may be off for these events
  kDataLoss,  // events are missing
};

enum class Stat : uint8_t {
  kTruncated,
  kCompressionDamaged,
  kCompressionTrailingBytes,
  kEventMalformed,
  kTextRepaired,
  kNotANumber,
  kEventWithoutTime,
  kTimeOutOfRange,
  kDurationMissing,
  kDurationOutOfRange,
  kIdOutOfRange,
  kSizeOutOfRange,
  kNestedTooDeep,
  kEventWithoutPhase,
  kPhaseUnknown,
  kBeginWithoutEnd,
  kEndWithoutBegin,
  kMetadataTooLarge,
  kSecondEventList,
  kUnfinishedOp,
  kFlowEndWithoutStart,
  kFlowStartWithoutEnd,
  kFlowWithoutSlice,
  kDeviceSliceWithoutLaunch,
  kLaunchWithoutDeviceSlice,
  kDeviceSliceWithoutOp,
  kKernelBeforeLaunch,
  kOverlappingHostSlices,
  kOverlappingDeviceSlices,
  kMemoryEventIncomplete,
  kDeviceSliceAcrossWindow,
  kRecorderDroppedEvents,
  kRecorderStoppedEarly,
  kLaneChunkDamaged,
  kLaneUnknownChunk,
  kDumpEntryMalformed,
  kDeviceNotUnderstood,
  kTableMissing,
  kColumnMissing,
  kValueOfWrongType,
  kDatabaseDamaged,
  kMessageMalformed,
  kNameMissing,
  kEventNotUsed,
  kLineMalformed,
  kLightWorkWithoutTwin,
  kNodeWithoutOp,
  kSnapshotOutsideTrace,
  kCount,
};
inline constexpr size_t kStatCount = static_cast<size_t>(Stat::kCount);

struct StatInfo {
  std::string_view name;
  Severity severity;
  std::string_view meaning;  // what happened to how many events, in plain words
  std::string_view remedy;   // what to do about it
};

inline constexpr std::array<StatInfo, kStatCount> kStats = {{
    {"trace.truncated", Severity::kDataLoss, "the file ends in the middle; everything before that was kept",
     "let the program finish writing, or copy the file again"},
    {"compression.damaged", Severity::kDataLoss,
     "the compressed data is damaged; everything before the damage was kept",
     "copy the file again, or export it again"},
    {"compression.trailing_bytes", Severity::kWarning, "bytes after the end of the compressed data were ignored",
     "harmless unless two files were joined; otherwise export it again"},
    {"chrome.event_malformed", Severity::kDataLoss, "events that are not valid JSON were skipped",
     "the exporter wrote a broken event; update torch, or record with firelane"},
    {"chrome.text_repaired", Severity::kWarning, "control characters or invalid UTF-8 inside strings were replaced",
     "update torch (pytorch#130622)"},
    {"chrome.not_a_number", Severity::kWarning, "NaN or Infinity was read as an absent value",
     "the exporter wrote numbers that JSON does not support"},
    {"chrome.event_without_time", Severity::kDataLoss, "events without a usable time were skipped",
     "the exporter wrote a broken event; update torch"},
    {"chrome.time_out_of_range", Severity::kDataLoss, "events with a time outside the years 1938 to 2096 were skipped",
     "the clock of the recording was broken; record again"},
    {"chrome.duration_missing", Severity::kWarning, "slices without a duration count as instants of 0 ns",
     "the exporter wrote a broken event"},
    {"chrome.duration_out_of_range", Severity::kWarning, "negative or overflowing durations were set to 0 ns",
     "update the GPU driver's profiling library"},
    {"chrome.id_out_of_range", Severity::kWarning, "ids that do not fit 64 bits were read as absent",
     "the exporter wrote a broken id"},
    {"trace.size_out_of_range", Severity::kWarning,
     "sizes or counts too large to be real (they would not add up in 64 bits) were read as absent",
     "the file is damaged, or its exporter wrote broken numbers; record or export it again"},
    {"trace.nested_too_deep", Severity::kWarning, "slices more than 1024 levels deep were set to 0 ns",
     "endless recursion, or a damaged file: record fewer Python frames"},
    {"chrome.event_without_phase", Severity::kDataLoss, "events without a phase (ph) were skipped",
     "the exporter wrote a broken event"},
    {"chrome.phase_unknown", Severity::kInfo, "events of a phase that firelane does not use were skipped",
     "none needed; firelane dump shows them"},
    {"chrome.begin_without_end", Severity::kWarning, "B or b events without an end were closed at the end of the trace",
     "stop the recording after the work has ended"},
    {"chrome.end_without_begin", Severity::kWarning, "E or e events without a begin were skipped",
     "start the recording before the work begins"},
    {"chrome.metadata_too_large", Severity::kInfo, "top-level values over 1 MiB were not kept",
     "none needed for the analyses"},
    {"chrome.second_event_list", Severity::kDataLoss, "a second traceEvents list was ignored",
     "two traces were joined; keep them in two files"},
    {"torch.unfinished_op", Severity::kInfo, "ops had not ended when the recording stopped",
     "stop the recording at a step boundary"},
    {"flow.end_without_start", Severity::kInfo, "arrows without a beginning were left out",
     "normal: Kineto writes an end for calls that launch nothing"},
    {"flow.start_without_end", Severity::kInfo, "arrows without an end were left out",
     "normal at the edges of a recording"},
    {"flow.without_slice", Severity::kInfo, "arrows that touch no slice were left out",
     "normal at the edges of a recording"},
    {"link.device_slice_without_launch", Severity::kInfo, "device work whose launch is not in the trace",
     "start recording before the first launch; record the CPU activity too"},
    {"link.launch_without_device_slice", Severity::kInfo, "launches whose device work is not in the trace",
     "stop after a device synchronization; torch drops work that ends after the window"},
    {"link.device_slice_without_op", Severity::kInfo, "device work that belongs to no op",
     "normal for kernels launched outside of PyTorch ops; record the CPU activity too"},
    {"link.kernel_before_launch", Severity::kWarning, "kernels start before the call that launched them",
     "host and device clocks disagree in this trace; compare the two sides with care"},
    {"lane.overlapping_host_slices", Severity::kInfo, "host slices that overlap without nesting were kept",
     "normal for asynchronous ranges"},
    {"lane.overlapping_device_slices", Severity::kInfo, "device slices that overlap on one stream were kept",
     "normal for CUDA graphs and programmatic dependent launch"},
    {"memory.event_incomplete", Severity::kWarning, "memory events without a size were skipped",
     "the exporter wrote a broken event"},
    {"record.work_across_window", Severity::kInfo,
     "device work that began before the recording, or ended after it, was marked; it counts from the start on",
     "normal where the GPU lags behind the program; synchronize before start and stop to avoid it"},
    {"record.dropped_events", Severity::kDataLoss, "the recorder dropped events because the disk or a buffer was full",
     "record fewer steps or a faster disk"},
    {"record.stopped_early", Severity::kDataLoss, "the recording ended before it was stopped",
     "see the recorder's reason in firelane info"},
    {"lane.chunk_damaged", Severity::kDataLoss, "damaged chunks were skipped", "copy the file again"},
    {"lane.unknown_chunk", Severity::kInfo, "chunks of an unknown kind were skipped", "update firelane"},
    {"dump.entry_malformed", Severity::kDataLoss,
     "entries of a memory snapshot or a flight recorder without a time, an address or a name were skipped",
     "they were written by a version of torch with a different format; dump them with a newer one"},
    {"device.not_understood", Severity::kWarning,
     "slices on lanes of a device are of an unknown kind; no conclusions are drawn from them",
     "the timeline shows them; report the format, so that a reader can be written"},
    {"database.table_missing", Severity::kInfo, "tables that this kind of database may have are not in it",
     "normal if nothing of that kind happened; otherwise record or export with that activity"},
    {"database.column_missing", Severity::kInfo, "columns that newer versions of the format have are not in it",
     "none needed; export with a newer version to get them"},
    {"database.value_of_wrong_type", Severity::kWarning, "rows with a value of the wrong type were skipped",
     "the database is damaged or was changed; export it again"},
    {"database.damaged", Severity::kDataLoss, "tables could be read only in part",
     "copy the file again, or export it again"},
    {"protobuf.message_malformed", Severity::kDataLoss, "messages that are not valid protobuf were skipped",
     "let the program finish writing, or copy the file again"},
    {"trace.name_missing", Severity::kWarning, "events refer to a name that is not in the file",
     "the file is cut off at its beginning, or was merged from parts"},
    {"trace.event_not_used", Severity::kInfo, "events of kinds that firelane does not use were skipped", "none needed"},
    {"text.line_malformed", Severity::kDataLoss, "lines that are formatted differently from the others were skipped",
     "the file was cut off or edited; export it again"},
    {"light.work_without_op", Severity::kInfo,
     "device work of light steps that no full step has in the same place, or that has no op there either",
     "normal for steps that differ (evaluation, checkpoints); record more full steps to compare with"},
    {"join.node_without_op", Severity::kInfo, "nodes of the execution trace that no op of the trace belongs to",
     "normal if one of the two was recorded longer; if there are many, they are from different runs"},
    {"join.outside_trace", Severity::kInfo,
     "events of the memory snapshot before the trace are in its first state, those after it were left out",
     "none needed; firelane memory SNAPSHOT shows all of them"},
}};

struct LossCounts {
  std::array<uint64_t, kStatCount> counts{};

  uint64_t& operator[](Stat stat) { return counts[static_cast<size_t>(stat)]; }
  uint64_t operator[](Stat stat) const { return counts[static_cast<size_t>(stat)]; }
  void add(const LossCounts& other) {
    for (size_t i = 0; i < kStatCount; ++i) counts[i] += other.counts[i];
  }
  bool operator==(const LossCounts&) const = default;
};

// "info", "warning", "data_loss": the words of reports, JSON, SQL and Arrow.
inline constexpr std::string_view name_of(Severity severity) {
  constexpr std::string_view kNames[] = {"info", "warning", "data_loss"};
  return kNames[static_cast<size_t>(severity)];
}

inline const StatInfo& info_of(Stat stat) { return kStats[static_cast<size_t>(stat)]; }

}  // namespace firelane

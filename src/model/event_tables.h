// The tables of everything else that happens at a time: marks, samples, counters, arrows, steps (model/tables.h).
#pragma once

#include "model/table.h"

namespace firelane {

#define FL_INSTANTS(WIDE, READ, MADE)                           \
  WIDE(int64_t, time_ns, kTime, "since the start of the trace") \
  READ(LaneId, lane, kFull, "lanes.id")                         \
  READ(StringId, name, kFull, "of the mark")                    \
  READ(StringId, category, kMaybe, "as in the trace")           \
  READ(InstantScope, scope, kFull, "thread, process or global") \
  WIDE(uint64_t, source, kSource, "where the event lies in the source")

struct RawInstant {
  FL_RAW_ROW(FL_INSTANTS)
};
struct Instants {
  FL_COLUMNS(RawInstant, FL_INSTANTS)
};

// Where threads were, looked at now and then while the recorder ran (firelane record --sample).
#define FL_STACK_SAMPLES(WIDE, READ, MADE)                                                            \
  WIDE(int64_t, time_ns, kTimeAside, "since the start of the trace, before which it may lie")         \
  WIDE(int64_t, weight_ns, kMaybeSize, "the time that it stands for: time since the previous sample") \
  READ(LaneId, lane, kFull, "lanes.id of the thread")                                                 \
  READ(StringId, stack, kMaybe, "Python stack, innermost first, joined by ;")                         \
  READ(int32_t, on_cpu, kMaybe, "1: the thread was on a core, 0: it waited; none: not known")         \
  READ(int32_t, has_gil, kMaybe, "1: it held the GIL")

struct RawStackSample {
  FL_RAW_ROW(FL_STACK_SAMPLES)
};
struct StackSamples {
  FL_COLUMNS(RawStackSample, FL_STACK_SAMPLES)
};

// A reader gives samples with their track; assemble() tells the tracks apart.
#define FL_COUNTERS(WIDE, READ, MADE) \
  WIDE(int64_t, time_ns, kTime, "")   \
  WIDE(double, value, kMaybe, "")     \
  WIDE(TraceId, pid, kMaybe, "")      \
  READ(StringId, name, kFull, "")     \
  READ(StringId, series, kMaybe, "the arg's key; none where there is one without a name")

struct RawCounter {
  FL_RAW_ROW(FL_COUNTERS)
};

#define FL_COUNTER_TRACKS(WIDE, READ, MADE)     \
  MADE(TraceId, pid, kMaybe, "process id")      \
  MADE(StringId, name, kFull, "of the counter") \
  MADE(StringId, series, kMaybe, "one counter may have several")

struct CounterTracks {
  FL_MADE_COLUMNS(FL_COUNTER_TRACKS)
};

#define FL_COUNTER_SAMPLES(WIDE, READ, MADE)                    \
  MADE(int64_t, time_ns, kTime, "since the start of the trace") \
  MADE(Row, track, kFull, "counter_tracks.id")                  \
  MADE(double, value, kMaybe, "of the counter from this time on")

struct CounterSamples {
  FL_MADE_COLUMNS(FL_COUNTER_SAMPLES)
};

enum class FlowPhase : uint8_t { kStart, kStep, kEnd };

// One end of an arrow, as readers give it; two of the same (category, name, id) make a flow.
#define FL_FLOW_ENDS(WIDE, READ, MADE)   \
  WIDE(int64_t, time_ns, kTimeAside, "") \
  WIDE(int64_t, id, kFull, "")           \
  READ(StringId, name, kFull, "")        \
  READ(StringId, category, kMaybe, "")   \
  READ(LaneId, lane, kFull, "")          \
  READ(FlowPhase, phase, kFull, "")      \
  READ(bool, bind_enclosing, kFull, "\"bp\": \"e\"")

struct RawFlow {
  FL_RAW_ROW(FL_FLOW_ENDS)
};

// Arrows of the trace that are not op -> launch -> device work (device_slices.launch and .op) or forward -> backward
// (op_details.forward).
#define FL_FLOWS(WIDE, READ, MADE)                    \
  MADE(StringId, name, kFull, "of the arrow")         \
  MADE(StringId, category, kMaybe, "as in the trace") \
  MADE(int64_t, flow_id, kMaybe, "as in the trace")   \
  MADE(SliceRef, from, kMaybe, "where it begins")     \
  MADE(SliceRef, to, kMaybe, "where it ends")

struct Flows {
  FL_MADE_COLUMNS(FL_FLOWS)
};

// A begin or end that finds its partner only when all parts are there (B/E on a lane, b/e/n by id).
#define FL_EDGES(WIDE, READ, MADE)                                                     \
  WIDE(int64_t, time_ns, kTimeAside, "")                                               \
  WIDE(uint64_t, source, kSource, "")                                                  \
  READ(StringId, name, kFull, "")                                                      \
  READ(StringId, category, kMaybe, "")                                                 \
  READ(StringId, id, kMaybe, "the text of scope and id of async events; none for B/E") \
  READ(LaneId, lane, kFull, "")                                                        \
  READ(char, phase, kFull, "B E b e n")

struct RawEdge {
  FL_RAW_ROW(FL_EDGES)
};

// Names of processes and threads: ph M.
enum class LaneNameKind : uint8_t { kProcessName, kProcessLabels, kProcessSortIndex, kThreadName, kThreadSortIndex };

#define FL_LANE_NAMES(WIDE, READ, MADE)            \
  WIDE(int64_t, number, kMaybe, "of a sort index") \
  READ(LaneId, lane, kFull, "")                    \
  READ(LaneNameKind, what, kFull, "")              \
  READ(StringId, text, kMaybe, "of a name")

struct RawLaneName {
  FL_RAW_ROW(FL_LANE_NAMES)
};

#define FL_STEPS(WIDE, READ, MADE)                               \
  MADE(int64_t, number, kFull, "N")                              \
  MADE(Row, slice, kMaybe, "host_slices.id")                     \
  MADE(int64_t, start_ns, kTime, "since the start of the trace") \
  MADE(int64_t, duration_ns, kFull, "of the step")

struct Steps {
  FL_MADE_COLUMNS(FL_STEPS)
};

// Steps as a recorder of ours timed them, those it did not record included. Sorted by start. Empty for other formats.
#define FL_TIMED_STEPS(WIDE, READ, MADE)                                          \
  WIDE(int64_t, number, kFull, "N")                                               \
  READ(StepDisturbance, disturbance, kFull, "none, warmup, recorded or light")    \
  WIDE(int64_t, start_ns, kTimeAside, "may lie before the trace")                 \
  WIDE(int64_t, duration_ns, kDuration, "of the step")                            \
  WIDE(int64_t, device_ns, kMaybe, "between its ends, by the device's own clock") \
  WIDE(int64_t, ran_ns, kMaybe, "its thread was on a core")                       \
  WIDE(int64_t, waited_ns, kMaybe, "its thread was ready to run and had no core")

struct RawTimedStep {
  FL_RAW_ROW(FL_TIMED_STEPS)
};
struct TimedSteps {
  FL_COLUMNS(RawTimedStep, FL_TIMED_STEPS)
};

}  // namespace firelane

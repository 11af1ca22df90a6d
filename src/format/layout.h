// The .lane file, byte by byte: the numbers that writer and reader share. docs/format.md is
// the other half of this file; golden bytes in layout_test.cc pin what is written here.
//
//   file   := header chunk* [trailer]
//
//   header, 16 bytes
//     0        4       5       6         8                16
//     | "LANE" | major | minor | u16 = 0 | u64 trace id    |
//
//   chunk, 24 bytes and the payload
//     0        4      5       6        8             12          16             20         24
//     | "lchk" | kind | flags | u16=0  | stored size | raw size  | chunk number | checksum | payload
//     flags bit 0: the payload is one zstd frame of `raw size` bytes; else stored = raw.
//     checksum: CRC-32C of the header's bytes 0..19 followed by the payload as stored.
//
//   trailer, 16 bytes, only after a clean end
//     | u64 offset of the index chunk | "LANE.END" |
//
// All numbers are little-endian. varint: 7 bits a byte, low bits first, at most 10 bytes.
// zigzag: (n << 1) ^ (n >> 63), then varint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace firelane::format {

inline constexpr std::string_view kLaneMagic = "LANE";
inline constexpr uint8_t kLaneMajor = 1;  // readers refuse a higher one
inline constexpr uint8_t kLaneMinor = 0;  // additions that older readers can skip
inline constexpr size_t kFileHeaderBytes = 16;
inline constexpr std::string_view kChunkMarker = "lchk";
inline constexpr size_t kChunkHeaderBytes = 24;
inline constexpr uint8_t kChunkFlagZstd = 1;
inline constexpr std::string_view kTrailerMagic = "LANE.END";
inline constexpr size_t kTrailerBytes = 16;
// No writer makes larger chunks; a reader treats a larger size as damage.
inline constexpr uint32_t kMaxChunkBytes = 64u << 20;

enum class ChunkKind : uint8_t {
  kNotes = 1,   // about the recording: clocks, options, metadata, steps, costs, losses
  kEvents = 2,  // definitions and per-thread streams
  kDevice = 3,  // kernels, memcpys, memsets, synchronizations, the calls that queued them: format/device.h
  kIndex = 4,   // where the chunks lie; the last one of a clean file
  kTrace = 5,   // a piece of a trace of another recorder, converted: together they are one Chrome trace, as text
  kTable = 6,   // rows of a converted trace that Chrome traces have no form for: format/table_chunk.h
};

// What a slice is. 0..15 are at::RecordScope's numbers.
enum class Scope : uint8_t {
  kFunction = 0,
  kBackwardFunction = 1,
  kTorchScriptFunction = 2,
  kKernelFunctionDtype = 3,
  kCustomClass = 4,
  kBuildFeature = 5,
  kLiteInterpreter = 6,
  kUser = 7,  // record_function, ProfilerStep#N
  kStaticRuntimeOp = 8,
  kStaticRuntimeModel = 9,
  kPythonFunction = 16,
  kPythonBuiltin = 17,  // a C call seen by the Python tracer
  kPythonGc = 18,       // a pause of the garbage collector
  kModule = 32,         // an nn.Module's call: "model.layers.3.attn.q_proj"
  kRuntime = 48,        // CUDA runtime call
  kDriver = 49,         // CUDA driver call
  kOverhead = 50,       // the recorder's own work
};

// Slices of one group nest; an end closes the innermost open slice of its group.
enum class ScopeGroup : uint8_t { kOp = 0, kPython = 1, kModule = 2, kCall = 3 };
constexpr ScopeGroup group_of(Scope scope) { return static_cast<ScopeGroup>(static_cast<uint8_t>(scope) >> 4 & 3); }

// More about the slice begun last on the thread.
enum class Attribute : uint8_t {
  kInputs = 1,         // text: an InputBlob
  kFlops = 2,          // number
  kForwardThread = 3,  // number: system thread id of the forward op
  kStack = 4,          // text: "file.py(3): f;file.py(9): main", innermost first
  kModules = 5,        // text: module hierarchy
  kExtraArgs = 6,      // text: JSON object whose fields join the event's args (collectives, overload, ...)
  kCorrelation = 7,    // number: of a runtime or driver call
  kFile = 8,           // text: where a Python function or module lies: "train.py(12)"
  kSequence = 9,       // number: autograd sequence number; written by begin()
  kCallId = 10,        // number: torch's id of the call (RecordFunction::handle), which execution traces name
  kTensors = 11,       // number of a text: which tensors the inputs are (record/torch/tensor_words.h)
  kCallLine = 12,      // number: of a Python function or C call, the line of the caller's source that called it
};
// In the column of texts. Readers take attributes that they do not know for numbers, so that no other may be.
constexpr bool is_text(Attribute a) {
  return a == Attribute::kInputs || a == Attribute::kStack || a == Attribute::kModules || a == Attribute::kExtraArgs ||
         a == Attribute::kFile;
}

// Records of a thread's stream in an events chunk: the low 4 bits of a tag byte. What lies in
// the high 4 bits (the variant) and in the other columns: format/events.h.
enum class Record : uint8_t {
  kExtended = 0,  // later kinds (Extended): numbers: kind varint, length varint, bytes
  kBegin = 1,
  kBeginSequence = 2,
  kEnd = 3,  // + group: 3, 4, 5, 6
  kEndPython = 4,
  kEndModule = 5,
  kEndCall = 6,
  kSlice = 7,  // complete: start and duration
  kAttribute = 8,
  kMemory = 9,
  kInstant = 10,
  kCounter = 11,
  kAsyncBegin = 12,
  kAsyncEnd = 13,
  kLost = 14,
  kThreadName = 15,
};

enum class Extended : uint8_t {
  // Where the memory records that follow in this section belong, until the next: stream handle varint, pool varint
  // (capture id << 32 | handle), u8: 1 = a segment that is mapped piece by piece (expandable). Before the first:
  // unknown.
  kMemoryPlace = 1,
};

enum class MemoryAction : uint8_t {
  kAlloc = 0,
  kFree = 1,
  kOutOfMemory = 2,
  // What a caching allocator does itself. Bytes are negative where memory is released.
  kFreeCompleted = 3,  // a freed block may be used again (kFree: when it was asked for)
  kSegment = 4,        // memory from or back to the driver
};

// A piece of a caching allocator's segment.
enum class BlockState : uint8_t {
  kFree = 0,
  kWaiting = 1,  // freed, but streams may still use it
  kAllocated = 2,
};

// Items of a notes chunk. Each is tag varint, length varint, bytes: unknown tags are skipped.
enum class Note : uint8_t {
  kProcess = 1,       // pid varint, tick source u8, ticks per second f64, host name text, command text
  kClockPair = 2,     // u8: 0 start, 1 heartbeat, 2 stop; ticks u64, monotonic i64, unix i64
  kOption = 3,        // key text, value text
  kMetadata = 4,      // key text, JSON text
  kStep = 5,          // number zigzag, phase u8, start ticks u64, duration ticks varint
  kCost = 6,          // event kind text, f64 ns an event
  kLoss = 7,          // reason text, count varint: replaces an earlier count of the same reason
  kStopped = 8,       // reason text: the recording ended by itself
  kPause = 9,         // u8: 0 paused, 1 resumed; ticks u64
  kThread = 10,       // thread index varint, system thread id varint, name text
  kDeviceClock = 11,  // u8: 0 start, 1 heartbeat, 2 stop; ticks u64, device ns i64, ticks that the reading took u64
  kOverload = 12,     // text id varint, text: the overload of ops whose name is that text; before its definition
  // Memory that a caching allocator held when its recording began, or continued: ticks u64, device type << 8 |
  // device + 1 varint, address varint, bytes varint, stream varint, pool varint, u8: 1 expandable, 2 large; then until
  // the end blocks in order of address: bytes << 2 | state varint (0 free, 1 freed but pending, 2 allocated). 0
  // bytes: the device had none.
  kSegment = 13,
  kDeviceWindow = 14,  // u8: 0 opened, 1 closed; device ns i64: device work is recorded between them
  kLevel = 15,         // u8: RecordLevel; ticks u64: from then on. Before the first: full
  // For the thread that ran the step before this note: ns on a core varint, ns ready to run without one varint.
  kStepThread = 16,
};

// How much is recorded. Light: device work, the calls that queued it, waits, steps, garbage collections; no ops.
enum class RecordLevel : uint8_t { kLight = 0, kFull = 1 };

// What the recorder did during a step.
enum class StepPhase : uint8_t {
  kUnrecorded = 0,  // no callback was on: the true step
  kWarmup = 1,      // callbacks on, nothing kept
  kRecorded = 2,
  kLight = 3,  // recorded at RecordLevel::kLight
};

// Inputs of an op (InputBlob). Each input is an 8-byte head and its data, 8-byte aligned:
//   | kind u8 | dtype u8 | rank u8 | has strides u8 | count u32 |
//   kTensor: rank sizes i64, then rank strides i64 when has_strides
//   kScalar, kScalarList, kOther: count = bytes of text; the text, zero-padded to 8
//   kTensorList: the next `count` inputs are its elements
//   kCutOff: inputs after this one did not fit
enum class InputKind : uint8_t {
  kTensor = 1,
  kUndefined = 2,
  kTensorList = 3,
  kScalar = 4,
  kScalarList = 5,
  kOther = 6,
  kCutOff = 7,
};

}  // namespace firelane::format

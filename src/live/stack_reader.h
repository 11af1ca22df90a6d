// The Python stacks of all threads of another process, read from its memory while it runs.
//
// Nothing is stopped and no lock is taken, neither the GIL nor a debugger's hold: the only cost to the program is the
// core that this runs on. So a stack may change while it is read. What does not fit together (a frame whose code is no
// code object any more, a generator without a caller) is read again, at most three times, and then counted as torn.
//
// One look costs one system call: it reads the threads and the frames that the last look found, all together, and the
// rest only of threads whose frames are others now.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "live/layout.h"
#include "live/line_table.h"
#include "live/memory.h"
#include "live/process.h"
#include "live/python.h"

namespace firelane::live {

struct Function {
  std::string name;  // with its class: "Module.forward"
  std::string file;  // of a native one, its library: "libtorch_cpu.so"
  int32_t first_line = 0;
  bool is_native = false;
};

struct Frame {
  uint32_t function = 0;  // in StackReader::functions()
  int32_t line = 0;
  bool is_entry = false;  // the outermost of those that one call of Python's evaluation loop runs

  bool operator==(const Frame&) const = default;
};

struct ThreadStack {
  uint64_t thread = 0;      // PyThreadState's address: one of a thread as long as it lives
  pid_t native_id = 0;      // the system's; 0: not known
  uint32_t stack = 0;       // in StackReader::stacks()
  bool has_changed = true;  // another frame or another instruction than at the last look
  bool holds_gil = false;
};

class StackReader {
 public:
  // An Error for a Python whose layout is not known, or that has not started yet.
  static Result<StackReader> open(const Process& process, const Python& python);
  // From what is at these addresses of a memory: Python's _PyRuntime and PyCode_Type.
  static Result<StackReader> at(Memory memory, const Layout& layout, uint64_t runtime, uint64_t code_type);

  // All threads that run Python code, or wait in it. False when the process is gone.
  bool look(std::vector<ThreadStack>& out);

  // One of those that the last look found, as it is now; false if it cannot be read.
  bool look_again(uint64_t thread, ThreadStack& out);

  // The thread (its PyThreadState) that has the GIL now; 0: none.
  uint64_t gil_holder();

  const std::vector<Function>& functions() const { return functions_; }
  const std::vector<std::vector<Frame>>& stacks() const { return stacks_; }  // innermost frame first
  uint64_t torn_count() const { return torn_count_; }
  uint64_t look_count() const { return look_count_; }

 private:
  struct Code {
    uint32_t function = 0;
    uint64_t file_name = 0;
    uint64_t name = 0;
    int32_t first_line = 0;
    bool is_suspendable = false;  // a generator or a coroutine
    std::vector<LineRange> lines;
    uint64_t checked_at = 0;  // look
  };
  struct RawFrame {
    uint64_t address = 0;
    uint64_t code = 0;
    uint64_t instruction = 0;
    bool is_entry = false;
    size_t buffer_offset = 0;

    bool is_at_same_place(const RawFrame& other) const {
      return address == other.address && code == other.code && instruction == other.instruction;
    }
  };
  struct Piece {  // of memory with frames
    uint64_t address = 0;
    size_t buffer_offset = 0;
    size_t bytes = 0;
  };
  struct Thread {
    uint64_t address = 0;
    std::vector<uint8_t> state;
    uint64_t cframe = 0;
    uint64_t frame_in_cframe = 0;
    std::vector<RawFrame> frames;
    std::vector<Piece> pieces;
    std::vector<uint8_t> buffer;
    bool was_read = false;
    bool has_moved = false;  // seen by look_again() since the last look
    uint32_t stack = 0;
  };

  StackReader(Memory memory, const Layout& layout) : memory_(std::move(memory)), layout_(&layout) {}

  bool read_known();
  void follow_threads();
  bool read_stack(Thread& thread, bool use_buffer, std::vector<RawFrame>& out);
  bool see(Thread& thread, ThreadStack& out);
  void keep(Thread& thread, std::vector<RawFrame>& frames);
  const Code* code_at(uint64_t address);
  bool load_code(uint64_t address, Code& out);
  std::string text_at(uint64_t address) const;
  uint32_t function_id(Function function);
  uint32_t stack_id(const std::vector<RawFrame>& frames);

  Memory memory_;
  const Layout* layout_;
  uint64_t interpreter_ = 0;
  uint64_t code_type_ = 0;
  uint64_t gil_ = 0;  // where its holder is noted
  uint64_t first_thread_ = 0;
  std::array<uint64_t, 2> gil_state_{};  // holder, whether it is held
  std::vector<Thread> threads_;
  std::vector<RawFrame> walked_;
  std::unordered_map<uint64_t, Code> codes_;
  std::unordered_map<std::string, uint32_t> function_ids_;
  std::vector<Function> functions_;
  std::unordered_multimap<uint64_t, uint32_t> stack_ids_;  // by hash
  std::vector<std::vector<Frame>> stacks_;
  uint64_t torn_count_ = 0;
  uint64_t look_count_ = 0;
};

}  // namespace firelane::live

#include "live/stack_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

namespace firelane::live {

namespace {

constexpr size_t kMostThreads = 65536;
constexpr int kMoreAttempts = 3;      // at a stack that changed meanwhile
constexpr size_t kMostFrames = 1000;  // of a stack; deeper ones keep their inner part
constexpr size_t kLongestText = 4096;
constexpr size_t kLongestTable = 1 << 20;
constexpr uint64_t kLargestGap = 1024;   // between frames that are read as one piece
constexpr uint64_t kCheckEvery = 32;     // looks: code objects are freed, and others come to lie at their place
constexpr uint64_t kTidInPthread = 720;  // of glibc on x86-64, for Python 3.10, which does not note it

// Bits of a code object's flags: CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR.
constexpr uint32_t kSuspendable = 0x20 | 0x80 | 0x200;

// Bits of a str's state.
constexpr unsigned kWidthShift = 2;
constexpr unsigned kCompactShift = 5;
constexpr unsigned kAsciiShift = 6;

uint64_t hash_of(const std::vector<Frame>& frames) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const Frame& frame : frames) {
    hash = (hash ^ frame.function) * 0x100000001b3;
    hash = (hash ^ static_cast<uint32_t>(frame.line)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

Result<StackReader> StackReader::open(const Process& process, const Python& python) {
  const Layout* layout = layout_of(python.version);
  if (layout == nullptr) {
    return Error{std::to_string(process.pid) + ": stacks of Python " + python.version.text() +
                 " cannot be read; of 3.10 to 3.14 they can"};
  }
  static constexpr std::array<std::string_view, 2> kNames = {"_PyRuntime", "PyCode_Type"};
  FL_TRY(const std::vector<uint64_t> addresses, python_addresses(process, python, kNames));
  auto out = at(Memory(process.pid), *layout, addresses[0], addresses[1]);
  if (!out.ok()) return Error{std::to_string(process.pid) + ": " + out.error().message};
  return out;
}

Result<StackReader> StackReader::at(Memory memory, const Layout& layout, uint64_t runtime, uint64_t code_type) {
  StackReader out(std::move(memory), layout);
  out.code_type_ = code_type;
  out.interpreter_ = out.memory_.read<uint64_t>(runtime + layout.main_interpreter).value_or(0);
  if (out.interpreter_ == 0) return Error{"Python has not started in it, or has ended"};
  const uint64_t gil =
      layout.gil_is_pointer ? out.memory_.read<uint64_t>(out.interpreter_ + layout.gil).value_or(0) : runtime;
  out.gil_ = gil + layout.gil_holder;
  out.stacks_.emplace_back();  // the empty one is 0
  return out;
}

bool StackReader::look(std::vector<ThreadStack>& out) {
  out.clear();
  ++look_count_;
  if (!read_known()) return false;
  follow_threads();
  for (Thread& thread : threads_) {
    bool is_whole = read_stack(thread, /*use_buffer=*/true, walked_);
    for (int attempt = 0; !is_whole && attempt < kMoreAttempts; ++attempt) {
      is_whole = memory_.read(thread.address, thread.state.data(), thread.state.size()) &&
                 read_stack(thread, /*use_buffer=*/false, walked_);
    }
    if (!is_whole) {
      ++torn_count_;
      continue;
    }
    ThreadStack seen;
    if (see(thread, seen)) out.push_back(seen);
  }
  return true;
}

bool StackReader::look_again(uint64_t thread, ThreadStack& out) {
  const auto found =
      std::find_if(threads_.begin(), threads_.end(), [&](const Thread& each) { return each.address == thread; });
  if (found == threads_.end() || !memory_.read(thread, found->state.data(), found->state.size()) ||
      !read_stack(*found, /*use_buffer=*/false, walked_))
    return false;
  const bool is_seen = see(*found, out);
  found->has_moved = out.has_changed;
  return is_seen;
}

uint64_t StackReader::gil_holder() {
  const bool is_read = memory_.read(gil_, gil_state_.data(), sizeof(gil_state_));
  return is_read && (gil_state_[1] & 0xffffffff) != 0 ? gil_state_[0] : 0;
}

// What was walked, as the thread's stack; false if that is empty.
bool StackReader::see(Thread& thread, ThreadStack& out) {
  if (walked_.empty()) return false;
  out = {.thread = thread.address};
  const bool is_other = !std::equal(walked_.begin(), walked_.end(), thread.frames.begin(), thread.frames.end(),
                                    [](const RawFrame& a, const RawFrame& b) { return a.is_at_same_place(b); });
  if (is_other) keep(thread, walked_);
  out.has_changed = is_other || thread.has_moved;
  thread.has_moved = false;
  out.stack = thread.stack;
  out.holds_gil = (gil_state_[1] & 0xffffffff) != 0 && gil_state_[0] == thread.address;
  if (layout_->native_id != 0) {
    out.native_id = static_cast<pid_t>(value_at<uint64_t>(thread.state.data(), layout_->native_id));
  } else {
#if defined(__x86_64__)
    const auto pthread = value_at<uint64_t>(thread.state.data(), layout_->pthread);
    out.native_id = memory_.read<int32_t>(pthread + kTidInPthread).value_or(0);
#endif
  }
  return true;
}

// Everything that the last look found, where it was then.
bool StackReader::read_known() {
  memory_.add(interpreter_ + layout_->first_thread, &first_thread_, sizeof(first_thread_));
  memory_.add(gil_, gil_state_.data(), sizeof(gil_state_));
  for (Thread& thread : threads_) {
    memory_.add(thread.address, thread.state.data(), thread.state.size());
    if (layout_->has_cframe)
      memory_.add(thread.cframe + layout_->cframe_frame, &thread.frame_in_cframe, sizeof(thread.frame_in_cframe));
    for (const Piece& piece : thread.pieces)
      memory_.add(piece.address, thread.buffer.data() + piece.buffer_offset, piece.bytes);
  }
  const std::vector<bool>& done = memory_.read_all();
  if (!done[0]) return false;
  size_t at = 2;
  for (Thread& thread : threads_) {
    const bool has_state = done[at++];
    bool has_frames = true;
    const size_t count = thread.pieces.size() + (layout_->has_cframe ? 1 : 0);
    for (size_t i = 0; i < count; ++i) has_frames = done[at++] && has_frames;
    thread.was_read = has_state && has_frames;
    if (!has_state) thread.address = 0;  // gone
  }
  return true;
}

// Python's list of threads: new ones are put in front.
void StackReader::follow_threads() {
  std::vector<Thread> now;
  now.reserve(threads_.size());
  size_t known = 0;
  uint64_t address = first_thread_;
  uint64_t passed = 0;  // one of those before: a list that was torn may lead back to it
  while (address != 0 && address != passed && now.size() < kMostThreads) {
    if (std::has_single_bit(now.size())) passed = address;
    const auto found = std::find_if(threads_.begin() + static_cast<ptrdiff_t>(known), threads_.end(),
                                    [&](const Thread& each) { return each.address == address; });
    if (found != threads_.end()) {
      known = static_cast<size_t>(found - threads_.begin()) + 1;
      now.push_back(std::move(*found));
    } else {
      Thread fresh{.address = address};
      fresh.state.resize(layout_->thread_bytes);
      if (!memory_.read(address, fresh.state.data(), fresh.state.size())) break;
      now.push_back(std::move(fresh));
    }
    address = value_at<uint64_t>(now.back().state.data(), layout_->next_thread);
  }
  threads_ = std::move(now);
}

// The frames from the innermost outwards; false if they do not fit together.
bool StackReader::read_stack(Thread& thread, bool use_buffer, std::vector<RawFrame>& out) {
  out.clear();
  use_buffer = use_buffer && thread.was_read;
  auto address = value_at<uint64_t>(thread.state.data(), layout_->frame);
  if (layout_->has_cframe && address != 0) {
    if (!use_buffer || address != thread.cframe) {
      thread.cframe = address;
      const auto frame = memory_.read<uint64_t>(address + layout_->cframe_frame);
      if (!frame) return false;
      thread.frame_in_cframe = *frame;
    }
    address = thread.frame_in_cframe;
  }
  size_t known = 0;
  bool lacks_caller = false;
  std::array<uint8_t, 128> fresh;
  for (size_t depth = 0; address != 0 && depth < kMostFrames; ++depth) {
    const uint8_t* bytes = nullptr;
    for (size_t i = known; use_buffer && bytes == nullptr && i < thread.frames.size(); ++i) {
      if (thread.frames[i].address != address) continue;
      bytes = thread.buffer.data() + thread.frames[i].buffer_offset;
      known = i + 1;
    }
    const bool is_new = bytes == nullptr;
    if (is_new) {
      if (!memory_.read(address, fresh.data(), layout_->frame_bytes)) return false;
      bytes = fresh.data();
    }
    RawFrame frame{.address = address, .code = value_at<uint64_t>(bytes, layout_->code) & ~kTagBits};
    const bool is_python = layout_->owner == 0 || value_at<uint8_t>(bytes, layout_->owner) < layout_->owned_by_c;
    frame.instruction = layout_->is_index ? value_at<uint32_t>(bytes, layout_->instruction)
                                          : value_at<uint64_t>(bytes, layout_->instruction);
    address = value_at<uint64_t>(bytes, layout_->previous);
    if (!is_python) frame.code = 0;
    frame.is_entry = layout_->is_entry == 0 || value_at<uint8_t>(bytes, layout_->is_entry) != 0;
    if (const auto known_code = codes_.find(frame.code);
        is_new && known_code != codes_.end() && known_code->second.checked_at != look_count_)
      known_code->second.checked_at = look_count_ - kCheckEvery;  // is it still the same function that lies there?
    const Code* code = is_python ? code_at(frame.code) : nullptr;
    if (is_python && code == nullptr) return false;
    lacks_caller = code != nullptr && code->is_suspendable && address == 0;
    out.push_back(frame);  // also those of C: their place has to be read for the way on
  }
  return !lacks_caller;  // else it was suspended meanwhile, which takes its caller away
}

// As the thread's frames from now on: with the pieces of memory to read at the next look.
void StackReader::keep(Thread& thread, std::vector<RawFrame>& frames) {
  thread.frames = frames;
  thread.stack = stack_id(frames);
  std::vector<size_t> order(frames.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return frames[a].address < frames[b].address; });
  thread.pieces.clear();
  size_t bytes = 0;
  for (const size_t i : order) {
    const uint64_t address = frames[i].address;
    const uint64_t end = address + layout_->frame_bytes;
    Piece* last = thread.pieces.empty() ? nullptr : &thread.pieces.back();
    if (last == nullptr || address > last->address + last->bytes + kLargestGap) {
      thread.pieces.push_back({.address = address, .buffer_offset = bytes, .bytes = 0});
      last = &thread.pieces.back();
    }
    last->bytes = std::max<size_t>(last->bytes, end - last->address);
    thread.frames[i].buffer_offset = last->buffer_offset + (address - last->address);
    bytes = last->buffer_offset + last->bytes;
  }
  thread.buffer.resize(bytes);
}

const StackReader::Code* StackReader::code_at(uint64_t address) {
  const auto found = codes_.find(address);
  if (found != codes_.end() && look_count_ - found->second.checked_at < kCheckEvery) return &found->second;
  Code code;
  if (!load_code(address, code)) {
    if (found != codes_.end()) codes_.erase(found);
    return nullptr;
  }
  return &codes_.insert_or_assign(address, std::move(code)).first->second;
}

bool StackReader::load_code(uint64_t address, Code& out) {
  std::array<uint8_t, 256> bytes;
  if (address == 0 || address % 8 != 0 || !memory_.read(address, bytes.data(), layout_->code_bytes)) return false;
  if (value_at<uint64_t>(bytes.data(), kObjectType) != code_type_) return false;
  out.file_name = value_at<uint64_t>(bytes.data(), layout_->file_name);
  out.name = value_at<uint64_t>(bytes.data(), layout_->name);
  out.first_line = value_at<int32_t>(bytes.data(), layout_->first_line);
  out.is_suspendable = (value_at<uint32_t>(bytes.data(), layout_->flags) & kSuspendable) != 0;
  out.checked_at = look_count_;
  if (const auto before = codes_.find(address); before != codes_.end() && before->second.file_name == out.file_name &&
                                                before->second.name == out.name &&
                                                before->second.first_line == out.first_line) {
    out.function = before->second.function;
    out.lines = std::move(before->second.lines);
    return true;
  }
  out.function = function_id({text_at(out.name), text_at(out.file_name), out.first_line});
  const auto table = value_at<uint64_t>(bytes.data(), layout_->line_table);
  const uint64_t size = memory_.read<uint64_t>(table + kBytesSize).value_or(0);
  std::vector<uint8_t> content(std::min<uint64_t>(size, kLongestTable));
  if (!memory_.read(table + kBytesData, content.data(), content.size())) content.clear();
  out.lines = lines_of(content, out.first_line, layout_->has_location_table);
  return true;
}

// A str: ASCII, or one to four bytes a character.
std::string StackReader::text_at(uint64_t address) const {
  std::array<uint8_t, 40> head;
  if (!memory_.read(address, head.data(), head.size())) return "?";
  const auto length = std::min<uint64_t>(value_at<uint64_t>(head.data(), kTextLength), kLongestText);
  const auto state = value_at<uint32_t>(head.data(), kTextState);
  const uint32_t width = (state >> kWidthShift) & 7;
  const bool is_compact = ((state >> kCompactShift) & 1) != 0;
  const bool is_ascii = ((state >> kAsciiShift) & 1) != 0;
  if (!is_compact || (width != 1 && width != 2 && width != 4)) return "?";
  std::vector<uint8_t> data(length * width);
  if (!memory_.read(address + (is_ascii ? layout_->ascii_bytes : layout_->compact_bytes), data.data(), data.size()))
    return "?";
  std::string out;
  for (size_t i = 0; i < length; ++i) {
    const uint32_t c = width == 1   ? data[i]
                       : width == 2 ? value_at<uint16_t>(data.data(), i * 2)
                                    : value_at<uint32_t>(data.data(), i * 4);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xc0 | (c >> 6));
      out += static_cast<char>(0x80 | (c & 63));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xe0 | (c >> 12));
      out += static_cast<char>(0x80 | ((c >> 6) & 63));
      out += static_cast<char>(0x80 | (c & 63));
    } else {
      out += static_cast<char>(0xf0 | ((c >> 18) & 7));
      out += static_cast<char>(0x80 | ((c >> 12) & 63));
      out += static_cast<char>(0x80 | ((c >> 6) & 63));
      out += static_cast<char>(0x80 | (c & 63));
    }
  }
  return out;
}

uint32_t StackReader::function_id(Function function) {
  const std::string key = function.file + "\n" + function.name + "\n" + std::to_string(function.first_line);
  const auto [found, is_new] = function_ids_.try_emplace(key, static_cast<uint32_t>(functions_.size()));
  if (is_new) functions_.push_back(std::move(function));
  return found->second;
}

uint32_t StackReader::stack_id(const std::vector<RawFrame>& frames) {
  std::vector<Frame> stack;
  for (const RawFrame& frame : frames) {
    if (frame.code == 0) {  // of C: the evaluation loop's own, which lies outside of those that it runs
      if (!stack.empty()) stack.back().is_entry = true;
      continue;
    }
    const Code* code = code_at(frame.code);
    if (code == nullptr) continue;
    const uint64_t offset =
        layout_->is_index ? frame.instruction * 2 : frame.instruction - (frame.code + layout_->instructions);
    const bool is_inside = offset < (uint64_t{1} << 31);
    stack.push_back(
        {code->function,
         is_inside ? line_at(code->lines, static_cast<uint32_t>(offset), code->first_line) : code->first_line,
         layout_->owner == 0 && frame.is_entry});
  }
  const uint64_t hash = hash_of(stack);
  const auto [begin, end] = stack_ids_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (stacks_[at->second] == stack) return at->second;
  }
  const auto id = static_cast<uint32_t>(stacks_.size());
  stack_ids_.emplace(hash, id);
  stacks_.push_back(std::move(stack));
  return id;
}

}  // namespace firelane::live

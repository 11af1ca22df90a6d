#include "live/stacks_text.h"

#include <time.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "live/native_view.h"
#include "live/python.h"
#include "live/stack_reader.h"

namespace firelane::live {

namespace {

constexpr int64_t kSampleEvery_ns = 1'000'000;
constexpr int64_t kLookEvery_ns = 10'000'000;

// Those in which threads wait, by number on x86-64.
std::string call_name(int64_t number) {
#if defined(__x86_64__)
  // No object with a destructor: a thread that is not waited for may ask while the program ends.
  static constexpr std::array<std::pair<int64_t, const char*>, 14> kNames = {{{0, "read"},
                                                                              {1, "write"},
                                                                              {7, "poll"},
                                                                              {23, "select"},
                                                                              {35, "nanosleep"},
                                                                              {45, "recvfrom"},
                                                                              {47, "recvmsg"},
                                                                              {61, "wait4"},
                                                                              {202, "futex"},
                                                                              {230, "clock_nanosleep"},
                                                                              {232, "epoll_wait"},
                                                                              {270, "pselect6"},
                                                                              {271, "ppoll"},
                                                                              {281, "epoll_pwait"}}};
  for (const auto& [known, name] : kNames) {
    if (known == number) return name;
  }
#endif
  return "system call " + std::to_string(number);
}

}  // namespace

std::string thread_state(pid_t process, pid_t thread) {
  WaitPlace place;
  const std::string folder = "task/" + std::to_string(thread) + "/";
  if (parse_wait_place(read_proc(process, folder + "syscall"), place))
    return place.call < 0 ? "waiting" : "waiting in " + call_name(place.call);
  const std::string stat = read_proc(process, folder + "stat");
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return "gone";
  switch (stat.c_str()[name_end + 2]) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "in the kernel, uninterruptible";
    case 'T': return "stopped";
    case 't': return "traced";
    default: return "ended";
  }
}

namespace {

std::string name_of(pid_t process, pid_t thread) {
  std::string name = read_proc(process, "task/" + std::to_string(thread) + "/comm");
  return name.substr(0, name.find('\n'));
}

void sleep_beside(NativeView& view, StackReader& reader) {
  struct timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  view.wait_until(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + kLookEvery_ns, reader);
}

struct Shown {
  ThreadStack seen;
  uint32_t stack = 0;
};

// Ids in `view`'s stacks. Threads that wait at once, those that run as soon as the kernel has a sample of them.
void read_merged(StackReader& reader, NativeView& view, int64_t running_ms, std::vector<Shown>& threads) {
  std::vector<Shown*> running;
  for (Shown& each : threads) {
    each.stack = view.stack_at_look(reader, each.seen, /*is_on_cpu=*/false, -1);
    if (view.is_waiting(each.seen.native_id)) continue;
    each.stack = view.stack_at_look(reader, each.seen, /*is_on_cpu=*/true, -1);
    running.push_back(&each);
  }
  for (int64_t waited_ns = 0; !running.empty() && waited_ns < running_ms * 1'000'000; waited_ns += kLookEvery_ns) {
    sleep_beside(view, reader);
    std::erase_if(running, [&](Shown* each) {
      if (!view.has_sample(each->seen.native_id)) return false;
      each->stack = view.stack_at_look(reader, each->seen, /*is_on_cpu=*/true, -1);
      return true;
    });
  }
}

class Writer {
 public:
  explicit Writer(pid_t process) : process_(process) {}

  void begin_thread(const ThreadStack& seen) {
    text_ += "thread " + name_of(process_, seen.native_id) + " " + std::to_string(seen.native_id) + ", " +
             thread_state(process_, seen.native_id) + (seen.holds_gil ? ", holds the GIL" : "") + "\n";
  }
  void add_frame(const std::string& name, const std::string& file, int32_t line) {
    text_ += "  " + name;
    if (!file.empty()) text_ += " (" + file + (line != 0 ? ":" + std::to_string(line) : "") + ")";
    text_ += "\n";
  }
  void add_line(const std::string& line) { text_ += line + "\n"; }
  void end_thread() { text_ += "\n"; }

  std::string take() { return std::move(text_); }

 private:
  pid_t process_;
  std::string text_;
};

}  // namespace

Result<std::string> stacks_text(const Process& process, const StacksTextOptions& options) {
  FL_TRY(const Python python, find_python(process));
  FL_TRY(StackReader reader, StackReader::open(process, python));
  std::vector<ThreadStack> seen;
  if (!reader.look(seen)) return Error{std::to_string(process.pid) + ": the program has ended"};
  std::optional<NativeView> view;
  std::string note;
  if (options.native) {
    auto opened = NativeView::open(process, python, kSampleEvery_ns);
    if (opened.ok())
      view.emplace(std::move(opened).value());
    else
      note = opened.error().message;
  }
  if (view) view->add_other_threads(seen);
  std::vector<Shown> threads;
  for (const ThreadStack& each : seen) {
    if (each.native_id == 0 || each.native_id != options.left_out) threads.push_back({each, each.stack});
  }
  if (view) read_merged(reader, *view, options.running_ms, threads);
  Writer out(process.pid);
  for (const Shown& each : threads) {
    out.begin_thread(each.seen);
    for (const Frame& frame : view ? view->stacks()[each.stack] : reader.stacks()[each.stack]) {
      if ((frame.function & NativeView::kNative) != 0) {
        const NativeFunction& function = view->native_functions()[frame.function & ~NativeView::kNative];
        out.add_frame(function.name, function.library, 0);
      } else {
        const Function& function = reader.functions()[frame.function];
        out.add_frame(function.name, function.file, frame.line);
      }
    }
    out.end_thread();
  }
  if (view) note = view->sampling_note();
  if (!note.empty()) out.add_line(note);
  return out.take();
}

}  // namespace firelane::live

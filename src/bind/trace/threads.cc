#include "bind/trace/threads.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "live/process.h"
#include "live/stack_recorder.h"
#include "live/stacks_text.h"
#include "live/watchdog.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace firelane::bind_trace {

namespace {

// For all threads at one moment. In Python another thread may run between two frames, and a generator that has yielded
// no longer knows its caller: a stack would end there. Here nothing gives the GIL up, nor may a collection start that
// could.
nb::dict python_stacks() {
  const bool was_collecting = PyGC_Disable() != 0;
  nb::dict stacks;
  try {
    const auto frames = nb::cast<nb::dict>(nb::module_::import_("sys").attr("_current_frames")());
    for (const auto& [thread, innermost] : frames) {
      nb::list stack;
      for (auto frame = nb::borrow<nb::object>(innermost); !frame.is_none(); frame = frame.attr("f_back"))
        stack.append(nb::make_tuple(frame.attr("f_code"), frame.attr("f_lineno")));
      stacks[thread] = stack;
    }
  } catch (...) {
    if (was_collecting) PyGC_Enable();
    throw;
  }
  if (was_collecting) PyGC_Enable();
  return stacks;
}

}  // namespace

void bind_threads(nb::module_& module) {
  module.def(
      "thread_stacks",
      [] {
        const nb::gil_scoped_release released;
        const auto own = static_cast<pid_t>(::syscall(SYS_gettid));
        const auto process = live::look_at(::getpid());
        if (!process.ok()) return process.error().message + "\n";
        auto text = live::stacks_text(process.value(), {.left_out = own});
        return text.ok() ? std::move(text).value() : text.error().message + "\n";
      },
      "Python's and native frames of all threads of this process but the calling one, or one line why not.");
  module.def("python_stacks", &python_stacks,
             nb::sig("def python_stacks() -> dict[int, list[tuple[types.CodeType, int]]]"),
             "By thread: code and line of its frames, innermost first, of all threads at the same moment.");
  module.def(
      "thread_state", [](int thread) { return live::thread_state(::getpid(), thread); }, "thread"_a,
      "Whether a thread of this process runs, or in which system call it waits.");
  nb::class_<live::Watchdog>(module, "Watchdog",
                             "Writes the stacks of all threads when it was not fed in time; needs no GIL for it.")
      .def(nb::init<std::string>(), "folder"_a)
      .def("feed", &live::Watchdog::feed, "step"_a, "limit_ms"_a)
      .def("take_incident", &live::Watchdog::take_incident)
      .def(
          "end",
          [](live::Watchdog& watchdog, int64_t longest_wait_ms) {
            const nb::gil_scoped_release released;
            return watchdog.end(std::chrono::milliseconds(longest_wait_ms));
          },
          "longest_wait_ms"_a);
  nb::class_<live::StackRecorder>(module, "StackRecorder",
                                  "Samples the stacks of this process from a thread that needs no GIL, until stop().")
      .def("start", &live::StackRecorder::start)
      .def(
          "stop",
          [](live::StackRecorder& recorder) {
            live::RecordedStacks seen;
            {
              const nb::gil_scoped_release released;
              seen = recorder.stop();
            }
            std::vector<std::pair<std::string, uint64_t>> losses;
            for (live::LostSamples& loss : seen.losses) losses.emplace_back(std::move(loss.reason), loss.count);
            return std::pair(std::move(seen.texts), std::move(losses));
          },
          "What was seen, as texts for metadata `stack_samples`; and what was not: (reason, count).");
  module.def(
      "record_stacks",
      [](double rate) {
        auto prepared = live::StackRecorder::prepare(rate);
        if (!prepared.ok()) throw std::runtime_error(prepared.error().message);
        return std::move(prepared).value();
      },
      "rate"_a, "What samples from start() on; a RuntimeError says why that is not possible.");
  module.def("wrong_rate", &live::wrong_rate, "rate"_a, "What is wrong with a rate of samples; empty: nothing.");
}

}  // namespace firelane::bind_trace

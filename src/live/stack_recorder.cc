#include "live/stack_recorder.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/json_writer.h"
#include "live/process.h"
#include "live/python.h"

namespace firelane::live {

namespace {

constexpr size_t kPieceBytes = 128 << 10;
constexpr size_t kMostTimed = 500'000;  // 16 MB; a thread that waits counts once for as long as it does

std::string text_of(const Samples& samples, uint32_t stack) {
  std::string out;
  for (const Frame& frame : samples.stacks[stack]) {
    const Function& function = samples.functions[frame.function];
    if (!out.empty()) out += ';';
    const size_t begin = out.size();
    out += function.file + "(" + std::to_string(frame.line) + "): " + function.name;
    for (size_t i = begin; i < out.size(); ++i) {
      if (out[i] == ';') out[i] = ':';
    }
  }
  return out;
}

// Stacks and samples of one text: numbers of stacks are places in its own list.
class Piece {
 public:
  void add(const Samples& samples, const TimedSample& sample) {
    const auto [at, is_new] = ids_.try_emplace(sample.stack, static_cast<int64_t>(ids_.size()));
    if (is_new) {
      stacks_.push_back(text_of(samples, sample.stack));
      bytes_ += stacks_.back().size() + 4;
    }
    rows_.push_back({&sample, at->second});
    bytes_ += 48;
  }
  size_t bytes() const { return bytes_; }
  bool empty() const { return rows_.empty(); }

  std::string json(const Samples& samples) const {
    JsonWriter json;
    json.begin_object().key("stacks").begin_array();
    for (const std::string& stack : stacks_) json.value(stack);
    json.end_array().key("samples").begin_array();
    for (const auto& [sample, stack] : rows_) {
      const int64_t flags = (sample->on_cpu ? 1 : 0) | (sample->has_gil ? 2 : 0) | (samples.knows_cpu ? 0 : 4);
      json.begin_array().value(static_cast<int64_t>(sample->ticks)).value(sample->weight_ns);
      json.value(int64_t{samples.threads[sample->thread].native_id}).value(stack).value(flags).end_array();
    }
    return json.end_array().end_object().take();
  }

 private:
  struct PieceRow {
    const TimedSample* sample;
    int64_t stack;
  };
  std::unordered_map<uint32_t, int64_t> ids_;
  std::vector<std::string> stacks_;
  std::vector<PieceRow> rows_;
  size_t bytes_ = 0;
};

}  // namespace

std::vector<std::string> samples_json(const Samples& samples, size_t piece_bytes) {
  std::vector<std::string> out;
  Piece piece;
  for (const TimedSample& sample : samples.timed) {
    piece.add(samples, sample);
    if (piece.bytes() < piece_bytes) continue;
    out.push_back(piece.json(samples));
    piece = {};
  }
  if (!piece.empty()) out.push_back(piece.json(samples));
  return out;
}

// What the thread has. A child that was forked has this and not the thread.
struct StackRecorder::Shared {
  Sampler sampler;
  std::atomic<bool> stop{false};
  Samples samples;  // the thread's until it has ended
  std::thread thread;
};

StackRecorder::StackRecorder(std::shared_ptr<Shared> shared) : shared_(std::move(shared)), process_(::getpid()) {}

Result<std::unique_ptr<StackRecorder>> StackRecorder::start(double rate) {
  FL_TRY(Process process, look_at(::getpid()));
  FL_TRY(Python python, find_python(process));
  FL_TRY_VOID(StackReader::open(process, python));
  return start([rate, process = std::move(process), python = std::move(python)](const std::atomic<bool>& stop) {
    auto seen = sample(process, python, {.rate = rate, .most_timed = kMostTimed, .stop = &stop});
    return seen.ok() ? std::move(seen).value() : Samples{};
  });
}

Result<std::unique_ptr<StackRecorder>> StackRecorder::start(Sampler sampler) {
  auto shared = std::make_shared<Shared>();
  shared->sampler = std::move(sampler);
  // The new thread inherits the mask: the program's signals go to its own threads.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  bool is_started = true;
  try {
    shared->thread = std::thread([shared = shared.get()] {
      ::pthread_setname_np(::pthread_self(), "firelane-sample");
      shared->samples = shared->sampler(shared->stop);
    });
  } catch (const std::system_error&) {
    is_started = false;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!is_started) return Error{"no more threads"};
  return std::unique_ptr<StackRecorder>(new StackRecorder(std::move(shared)));
}

std::vector<std::string> StackRecorder::stop() {
  if (shared_ == nullptr) return {};
  const std::shared_ptr<Shared> shared = std::move(shared_);
  if (process_ != ::getpid()) {
    // Nobody can join or detach a thread that is not there.
    new std::shared_ptr<Shared>(shared);  // NOLINT(bugprone-unused-raii): kept for good
    return {};
  }
  shared->stop = true;
  shared->thread.join();
  return samples_json(shared->samples, kPieceBytes);
}

StackRecorder::~StackRecorder() { (void)stop(); }

}  // namespace firelane::live

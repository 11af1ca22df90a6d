#include "live/stack_recorder.h"

#include <unistd.h>

#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/json_writer.h"
#include "base/own_thread.h"
#include "live/process.h"
#include "live/python.h"

namespace firelane::live {

namespace {

constexpr std::string_view kEnded = "stacks: sampling ended early: ";
constexpr size_t kMostReasonBytes = 500;
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

std::vector<std::string> samples_json(const Samples& samples, const TextLimits& limits, uint64_t& left_out) {
  std::vector<std::string> out;
  Piece piece;
  size_t bytes = 0;
  const auto end_piece = [&] {
    out.push_back(piece.json(samples));
    bytes += out.back().size();
    piece = {};
  };
  for (size_t i = 0; i < samples.timed.size(); ++i) {
    if (bytes >= limits.all_bytes) {
      left_out += samples.timed.size() - i;
      return out;
    }
    piece.add(samples, samples.timed[i]);
    if (piece.bytes() >= limits.piece_bytes) end_piece();
  }
  if (!piece.empty()) end_piece();
  return out;
}

// What the thread has. A child that was forked has this and not the thread.
struct StackRecorder::Shared {
  Sampler sampler;
  std::atomic<bool> stop{false};
  std::optional<Samples> samples;  // the thread's until it has ended, as the next
  LostSamples failure;
  std::thread thread;

  Shared() { failure.reason.reserve(kMostReasonBytes); }
  void run() noexcept;
  void fail(std::string_view reason) noexcept;
  RecordedStacks take();
};

// There may be no memory left: only what was set aside is used.
void StackRecorder::Shared::fail(std::string_view reason) noexcept {
  failure.reason = kEnded;
  failure.reason += reason.substr(0, kMostReasonBytes - kEnded.size());
}

void StackRecorder::Shared::run() noexcept {
  try {
    auto seen = sampler(stop);
    if (!seen.ok()) return fail(seen.error().message);
    samples = std::move(seen).value();
    if (!samples->failure.empty()) return fail(samples->failure);
    if (!stop) fail("the memory of this process cannot be read any more");
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

RecordedStacks StackRecorder::Shared::take() {
  RecordedStacks out;
  if (!failure.reason.empty()) out.losses.push_back(failure);
  if (!samples) return out;
  uint64_t dropped = samples->untimed_count;
  out.texts = samples_json(*samples, {}, dropped);
  if (dropped > 0) out.losses.push_back({"stack samples dropped: too many for the trace; sample less often", dropped});
  if (samples->torn_count > 0)
    out.losses.push_back({"stack samples dropped: the stacks changed while they were read", samples->torn_count});
  return out;
}

StackRecorder::StackRecorder(std::unique_ptr<Shared> shared) : shared_(std::move(shared)), process_(::getpid()) {}

Result<std::unique_ptr<StackRecorder>> StackRecorder::prepare(double rate) {
  if (std::string wrong = wrong_rate(rate); !wrong.empty()) return Error{std::move(wrong)};
  FL_TRY(Process process, look_at(::getpid()));
  FL_TRY(Python python, find_python(process));
  FL_TRY_VOID(StackReader::open(process, python));
  return prepare([rate, process = std::move(process), python = std::move(python)](const std::atomic<bool>& stop) {
    return sample(process, python, {.rate = rate, .most_timed = kMostTimed, .stop = &stop});
  });
}

std::unique_ptr<StackRecorder> StackRecorder::prepare(Sampler sampler) {
  auto shared = std::make_unique<Shared>();
  shared->sampler = std::move(sampler);
  return std::unique_ptr<StackRecorder>(new StackRecorder(std::move(shared)));
}

void StackRecorder::start() noexcept {
  if (shared_ == nullptr || process_ != ::getpid() || shared_->thread.joinable()) return;
  shared_->thread = start_own_thread("firelane-sample", [shared = shared_.get()] { shared->run(); });
  if (!shared_->thread.joinable()) shared_->fail("could not start a thread");
}

std::unique_ptr<StackRecorder::Shared> StackRecorder::end_thread() noexcept {
  std::unique_ptr<Shared> shared = std::move(shared_);
  if (shared == nullptr) return nullptr;
  if (process_ != ::getpid()) {
    static_cast<void>(shared.release());  // nobody can join or detach a thread that is not there
    return nullptr;
  }
  shared->stop = true;
  if (shared->thread.joinable()) shared->thread.join();
  return shared;
}

RecordedStacks StackRecorder::stop() noexcept {
  RecordedStacks out;
  try {
    out.losses.resize(1);  // in case that there is no memory for more
    out.losses[0].reason = "stack samples dropped: no memory to write them";
    const std::unique_ptr<Shared> shared = end_thread();
    out.losses[0].count = shared != nullptr && shared->samples ? shared->samples->timed.size() : 0;
    return shared == nullptr ? RecordedStacks() : shared->take();
  } catch (const std::exception&) {
    return out;
  }
}

StackRecorder::~StackRecorder() { static_cast<void>(end_thread()); }

}  // namespace firelane::live

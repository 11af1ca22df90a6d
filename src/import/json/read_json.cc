#include "import/json/read_json.h"

#include <algorithm>
#include <thread>

#include "import/json/careful_reader.h"
#include "import/json/chunks.h"
#include "import/json/envelope.h"
#include "import/json/event_parser.h"
#include "import/json/gpu_metrics.h"
#include "import/json/json_args.h"
#include "import/json/other_devices.h"
#include "import/json/scan.h"
#include "import/metadata.h"

namespace firelane::importer {

namespace {

constexpr size_t kMinChunkBytes = size_t{1} << 18;
constexpr size_t kMaxChunkBytes = size_t{16} << 20;
constexpr uint64_t kUsualRatio = 14;  // of a compressed trace

constexpr size_t kMaxTrailerBytes = size_t{64} << 20;

// What a worker made of one chunk.
struct ParsedChunk {
  size_t index = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  bool whole = false;  // parsed to its end; else to be read again
  RawPart part;
};

class JsonReader {
 public:
  JsonReader(std::shared_ptr<ByteSource> source, const JsonOptions& options)
      : source_(std::move(source)), options_(options) {}

  Result<RawTrace> run(const std::string& name) {
    FL_TRY(EnvelopeStart start, read_envelope_start(*source_, name));
    raw_.info.metadata = std::move(start.metadata);
    raw_.losses.add(start.losses);
    is_object_ = start.is_object;
    ChunkFeeder feeder(*source_, std::move(start.carry), start.events_source, options_.chunk_bytes);
    parse_chunks(feeder);
    if (!source_->fatal().empty()) return Error{name + ": " + source_->fatal()};
    join_chunks(feeder);
    finish(feeder);
    return std::move(raw_);
  }

 private:
  void parse_chunks(ChunkFeeder& feeder) {
    const unsigned workers = std::max(1u, options_.threads);
    for (unsigned i = 0; i < workers; ++i) raw_.pools.emplace_back();
    std::vector<std::vector<ParsedChunk>> done(workers);
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < workers; ++i) threads.emplace_back([&, i] { work(feeder, i, done[i]); });
    work(feeder, 0, done[0]);
    for (std::thread& thread : threads) thread.join();
    for (auto& list : done) {
      for (ParsedChunk& chunk : list) chunks_.push_back(std::move(chunk));
    }
    std::sort(chunks_.begin(), chunks_.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  }

  void work(ChunkFeeder& feeder, unsigned worker, std::vector<ParsedChunk>& done) {
    EventParser parser(raw_.pools[worker], worker);
    ChunkBuffer buffer;
    while (feeder.next(buffer)) {
      ParsedChunk& chunk = done.emplace_back();
      chunk.index = buffer.index;
      chunk.begin = buffer.source;
      chunk.end = buffer.source + buffer.size;
      chunk.whole = parser.parse_events(buffer.text(), buffer.size, buffer.source, chunk.part);
      if (!chunk.whole) mend(parser, buffer, chunk);
      if (options_.progress && worker == 0) options_.progress(source_->consumed_bytes(), source_->total_bytes());
    }
  }

  // Bad characters are the usual reason why a chunk does not parse, and mended in place.
  static void mend(EventParser& parser, ChunkBuffer& buffer, ParsedChunk& chunk) {
    const Repairs repairs = repair_text(buffer.text(), buffer.size);
    chunk.part = RawPart();
    if (repairs.characters + repairs.numbers == 0) return;
    chunk.whole = parser.parse_events(buffer.text(), buffer.size, buffer.source, chunk.part);
    if (!chunk.whole) {
      chunk.part = RawPart();
      return;
    }
    chunk.part.losses[Stat::kTextRepaired] += repairs.characters;
    chunk.part.losses[Stat::kNotANumber] += repairs.numbers;
  }

  // Puts the chunks in order. From one that did not parse on, events are read carefully
  // until a place is reached where a later chunk begins.
  void join_chunks(ChunkFeeder& feeder) {
    EventParser parser(raw_.pools[0], 0);
    CarefulReader careful(*source_, parser);
    uint64_t at = chunks_.empty() ? feeder.rest_source() : chunks_.front().begin;
    size_t i = 0;
    const uint64_t end = feeder.end();
    while (i < chunks_.size()) {
      ParsedChunk& chunk = chunks_[i];
      if (at > chunk.begin) {  // careful reading went past the place where this one was cut
        if (at < chunk.end) {
          chunk.whole = false;
        } else {
          chunk = ParsedChunk();
          ++i;
          continue;
        }
      }
      if (chunk.whole) {
        at = chunk.end;
        raw_.parts.push_back(std::move(chunk.part));
      } else {
        RawPart& part = raw_.parts.emplace_back();
        const auto stop = careful.read(std::max(at, chunk.begin), chunk.end, end, part);
        at = careful.position();
        if (stop != CarefulReader::Stop::kBoundary) return close_list(stop, careful);
      }
      ++i;
    }
    RawPart& part = raw_.parts.emplace_back();
    const auto stop = careful.read(std::max(at, feeder.rest_source()), UINT64_MAX, end, part);
    close_list(stop, careful);
  }

  void close_list(CarefulReader::Stop stop, const CarefulReader& careful) {
    list_closed_ = stop == CarefulReader::Stop::kListEnd;
    list_end_ = careful.position();
    if (careful.torn()) torn_ = true;
  }

  void finish(const ChunkFeeder& feeder) {
    if (list_closed_ && is_object_) {
      std::string trailer(static_cast<size_t>(std::min<uint64_t>(feeder.end() - list_end_, kMaxTrailerBytes)), '\0');
      const auto got = source_->read_at(list_end_, trailer.data(), trailer.size());
      trailer.resize(got.ok() ? got.value() : 0);
      read_envelope_end(trailer, raw_.info.metadata, raw_.losses);
    } else if (torn_ || (is_object_ && !list_closed_)) {
      ++raw_.losses[Stat::kTruncated];  // a bare list may end without its bracket
    }
    raw_.losses.add(source_->losses());
    // One tear is one loss, wherever it was noticed.
    raw_.losses[Stat::kTruncated] = std::min<uint64_t>(raw_.losses[Stat::kTruncated], 1);
    raw_.info.content_bytes = feeder.end();
    raw_.info.origin = is_object_ && looks_like_kineto() ? Origin::kKineto : Origin::kOther;
    interpret_metadata(raw_.info);
    settle_devices(raw_);
    settle_gpu_metrics(raw_);
    if (raw_.info.format.empty())
      raw_.info.format = raw_.info.origin == Origin::kKineto   ? "Kineto JSON"
                         : raw_.info.origin == Origin::kAscend ? "Ascend JSON"
                                                               : "Chrome JSON";
    raw_.args = std::make_shared<JsonArgs>(source_, feeder.end());
  }

  bool looks_like_kineto() const {
    for (const MetadataEntry& entry : raw_.info.metadata) {
      if (entry.key == "schemaVersion" || entry.key == "deviceProperties" || entry.key == "baseTimeNanoseconds")
        return true;
    }
    return false;
  }

  std::shared_ptr<ByteSource> source_;
  const JsonOptions& options_;
  RawTrace raw_;
  std::vector<ParsedChunk> chunks_;
  bool is_object_ = false;
  bool list_closed_ = false;
  bool torn_ = false;
  uint64_t list_end_ = 0;
};

}  // namespace

Result<RawTrace> read_json(std::shared_ptr<ByteSource> source, const std::string& name, const JsonOptions& options) {
  return JsonReader(std::move(source), options).run(name);
}

Reader json_reader() {
  return {"JSON", [](std::string_view) { return true; },
          [](std::unique_ptr<ByteSource> content, const ReadRequest& request) {
            const uint64_t bytes = request.is_compressed ? request.file_bytes * kUsualRatio : request.file_bytes;
            const uint64_t chunk = bytes / (size_t{request.threads} * 64);
            return read_json(std::move(content), request.name,
                             {.threads = request.threads,
                              .chunk_bytes = std::clamp<size_t>(chunk, kMinChunkBytes, kMaxChunkBytes),
                              .progress = request.progress});
          }};
}

}  // namespace firelane::importer

// Generation by a language model: prefill and decode passes, found by themselves.
//
// A pass starts with the token embedding: the aten::embedding with the largest table, whose indices [batch, tokens] say
// how many tokens go in. More than one token is a prefill (or one of its chunks), one is a decode. Passes follow each
// other as steps do (step_spans.h): one lasts until the host starts the next and the device has done what it launched,
// so sampling and the host's work between passes are in it. Annotations that name "prefill" or "decode" win over
// shapes; they last as long as they say, or until the device has done their work. A trace with a backward is no
// inference.
//
// time to first token: from the start of a request's first prefill pass to the end of its last. Prefills in a row are
// chunks of one request where the attention's keys have grown by the tokens of the chunk; else each is a request.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct GenerationPass {
  bool prefill = false;
  int64_t batch = kNoNumber;    // sequences; kNoNumber when only annotations tell
  int64_t tokens = kNoNumber;   // per sequence that go in
  int64_t context = kNoNumber;  // tokens attended to, from the attention's keys; kNoNumber unknown
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t device_busy_ns = 0;  // union, within the pass
  int64_t kernels = 0;
};

struct Inference {
  std::vector<GenerationPass> passes;  // in order of time
  bool by_annotation = false;
  bool is_training = false;  // a backward was found: no answer
  int64_t prefills = 0;
  int64_t decodes = 0;
  int64_t batch = kNoNumber;                   // of the decode passes, when all agree
  int64_t requests = 0;                        // prefills, chunks of one counted once
  int64_t time_to_first_token_ns = kNoNumber;  // of the first request
  int64_t time_per_token_ns = kNoNumber;       // median of the decode passes
  int64_t min_token_ns = kNoNumber;
  int64_t max_token_ns = kNoNumber;
  int64_t prefill_ns = 0;
  int64_t decode_ns = 0;
  double decode_tokens_per_s = -1;   // new tokens of all sequences by decode time; -1 batch not known
  double prefill_tokens_per_s = -1;  // prompt tokens of all sequences by prefill time
};

Inference find_inference(const Model& model);

}  // namespace firelane::analyze

// One thing worth fixing: what, how much, where to look, what to try.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/common/intervals.h"
#include "model/model.h"

namespace firelane::advise {

enum class Confidence : uint8_t { kLow, kMedium, kHigh };
std::string_view name_of(Confidence confidence);  // "low", "medium", "high"

// Time per step that would be saved, on the clock without recording.
struct Gain {
  int64_t low_ns = 0;
  int64_t high_ns = 0;
  int64_t likely_ns = kNoNumber;  // within the range; kNoNumber: its middle
  int64_t middle_ns() const { return likely_ns == kNoNumber ? low_ns + (high_ns - low_ns) / 2 : likely_ns; }
};

// What comes before the order of gains.
enum class Precedence : uint8_t {
  kNamed,  // large, but nothing is known to do about it: after all that has a remedy
  kByGain,
  kNeedless,  // work whose result nobody uses: to be left out before anything makes it faster
  kFails,     // the program will fail
};

// A line of the program, and its part of something.
struct Place {
  std::string line;         // "src/model.py(41): forward"
  std::string called_from;  // where that is of an installed package: the program's line that led to it; else ""
  std::vector<std::string> callers;  // where its function was called, if that is more than one line; the most first
  int64_t ns = 0;                    // per step
  double share = 0;                  // 0..1
  // Of the lines of a step: the operators, or the lines of a package, that take the most of its time: "AminBackward0
  // 51%, aten::amin 20%".
  std::string most_in;
};

struct Finding {
  std::string id;                  // the rule's: "input-bound"; `firelane explain ID` has the long form
  std::string title;               // one sentence with the number that matters
  int64_t cost_ns = 0;             // per step: what the problem takes, whether or not all of it can be saved
  double share_of_step = 0;        // cost_ns divided by a step without recording: 0..1. 0 when it is not about time
  Gain gain;                       // per step; from replaying the dependency graph (Context::gain_ns)
  int64_t of_step_ns = kNoNumber;  // the step that the gain is of, where it is not Context::step_ns
  int64_t most_ns = INT64_MAX;     // the gain cannot be more, whatever the rule's error
  bool saves_all = false;          // the gain is all that the problem takes: nothing else goes with it
  std::vector<SliceRef> slices;    // evidence: the worst few events, worst first
  std::vector<SliceRef> behind;    // all events, for `places`; empty: `slices` stand for them
  std::vector<Place> places;       // the lines that take the most of it; empty where they are not known
  std::vector<analyze::Interval> ranges;  // evidence: where to look in the timeline
  int64_t events = 0;                     // how many events are behind it in all
  std::string try_text;                   // what to do, one sentence
  std::string try_code;                   // one line of code
  Confidence confidence = Confidence::kMedium;
  std::string confirm_by;  // what to record or try to be sure; "" when confidence is high
  // Findings with the same cause are one: the one with the largest gain stays. "" = its own.
  std::string cause;
  // The cause of a more general finding that this one is a part of: its gain is taken out of that one's, so that
  // the specific remedy comes first and no gain is promised twice. "" = of none.
  std::string part_of;
  Precedence precedence = Precedence::kByGain;
  // Said for its share of the step, whatever the replay says can be saved.
  bool said_by_share = false;
};

}  // namespace firelane::advise

// What the recorder's own code costs here and now: short loops on a scratch buffer.
#include <algorithm>

#include "record/core/recorder.h"
#include "record/core/session.h"

namespace firelane::record {
namespace {

// Keeps the compiler from removing a lookup whose result is unused.
void keep(TextSlot slot) { asm volatile("" : : "r"(slot) : "memory"); }

// The best of a few rounds: what the code costs when nothing disturbs it.
template <typename Act>
double best_ns(ThreadBuffer* b, double ns_per_tick, Act&& act) {
  constexpr int kRounds = 7;
  constexpr int kEvents = 500;  // 48 bytes each fit one block
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    Recorder::get().rewind_scratch(b);
    act();  // defines texts outside the measured loop
    const uint64_t begin = now_ticks();
    for (int i = 0; i < kEvents; ++i) act();
    best = std::min(best, static_cast<double>(now_ticks() - begin) * ns_per_tick / kEvents);
  }
  return best;
}

}  // namespace

std::vector<CoreCost> core_costs() {
  ThreadBuffer* b = Recorder::get().take_scratch();
  if (b == nullptr) return {};
  const double ns = 1e9 / ticks_per_second();
  static constexpr const char* kName = "aten::add_";
  const int64_t sizes[2] = {16, 512};
  std::vector<CoreCost> costs;
  costs.push_back({"begin+end", best_ns(b, ns, [&] {
                     b->begin(now_ticks(), b->stable_name(kName), format::Scope::kFunction, 1);
                     b->end(now_ticks(), format::ScopeGroup::kOp);
                   })});
  costs.push_back({"begin+end+inputs", best_ns(b, ns, [&] {
                     b->begin(now_ticks(), b->stable_name(kName), format::Scope::kFunction, 1);
                     InputBlob blob;
                     blob.tensor(6, sizes, sizes, 2);
                     b->attribute(format::Attribute::kInputs, b->inputs(blob));
                     b->end(now_ticks(), format::ScopeGroup::kOp);
                   })});
  costs.push_back({"memory", best_ns(b, ns, [&] { b->memory(now_ticks(), {.address = 64, .bytes = 64}); })});
  costs.push_back({"text", best_ns(b, ns, [&] { keep(b->text("Optimizer.step#AdamW.step")); })});
  Recorder::get().give_scratch(b);
  return costs;
}

}  // namespace firelane::record

#include "advise/proofs.h"

#include <algorithm>
#include <iterator>

namespace firelane::advise {

namespace {

// Made by bench/diagnose/calibrate.py from the tuning and the older programs, those planted for a rule, and the blind
// tests, all of which have been opened but the newest; no held-out program and none of kinds_fresh.py is in it. Beside
// those about gains: the leak and the threads that were planted, and true steps of our own recordings within 15%
// (bench/diagnose/library.md).
constexpr Proof kProofs[] = {
    {"allocator-thrash", 1, 1, 0.07},
    {"attention-mask", 3, 2, 0.17},
    {"attention-unfused", 9, 6, 0.21},
    {"constant-copies", 4, 4, 0.77},
    {"conv-bias-before-batch-norm", 1, 1, 0.02},
    {"cpu-oversubscription", 1, 1, 0.00},
    {"dtype-ping-pong", 3, 3, 1.67},
    {"fp32-matmul", 3, 3, 0.07},
    {"fp64-compute", 7, 7, 1.85},
    {"gc-pauses", 1, 1, 0.03},
    {"growing-input", 3, 3, 1.02},
    {"host-code", 6, 6, 0.69},
    {"host-compute", 5, 4, 1.52},
    {"host-sync", 7, 7, 0.29},
    {"input-bound", 5, 5, 0.12},
    {"launch-overhead", 2, 2, 0.14},
    {"layout-copies", 7, 5, 0.30},
    {"memory-leak", 1, 1, 0.00},
    {"pageable-copies", 4, 4, 0.09},
    {"pointwise-unfused", 10, 9, 0.94},
    {"recomputed-prefix", 2, 2, 0.54},
    {"recording-distorts", 30, 28, 0.15},
    {"repeated-backward", 6, 6, 0.30},
    {"repeated-operators", 33, 30, 0.29},
    {"single-tensor-optimizer", 5, 5, 0.10},
    {"slow-steps", 4, 4, 0.22},
    {"stream-waits", 3, 2, 0.60},
    {"tensor-cores-unused", 1, 1, 0.08},
    {"unused-gradients", 12, 10, 1.12},
    {"whole-copies", 1, 1, 0.04},
    {"zero-grad-fills", 1, 1, 0.02},
};

constexpr double kErrorOfAll = 0.56;  // the same of all programs, whatever the rule
constexpr double kWeightOfAll = 2;    // as many programs as that counts for
constexpr double kMostError = 0.8;    // a gain that is said is at least a fifth of it

}  // namespace

const Proof* proof_of(std::string_view rule) {
  const auto* found =
      std::find_if(std::begin(kProofs), std::end(kProofs), [&](const Proof& each) { return each.rule == rule; });
  return found == std::end(kProofs) ? nullptr : found;
}

double error_of(std::string_view rule) {
  const Proof* proof = proof_of(rule);
  if (proof == nullptr) return kErrorOfAll;
  const double own = proof->programs;
  return std::min(kMostError, (own * proof->error + kWeightOfAll * kErrorOfAll) / (own + kWeightOfAll));
}

Confidence most_sure(std::string_view rule) {
  const Proof* proof = proof_of(rule);
  if (proof == nullptr) return Confidence::kMedium;
  const double share = static_cast<double>(proof->right) / std::max(1, proof->programs);
  if (share < 0.6) return Confidence::kLow;
  return proof->programs >= kLeastPrograms && share >= 0.9 ? Confidence::kHigh : Confidence::kMedium;
}

}  // namespace firelane::advise

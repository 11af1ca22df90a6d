#include "advise/proofs.h"

#include <algorithm>
#include <iterator>

namespace firelane::advise {

namespace {

// Made by bench/diagnose/calibrate.py from the tuning and the older programs; no held-out program is in it. Beside
// those about gains: the leak that was planted, and true steps of our own recordings within 15%
// (bench/diagnose/library.md).
constexpr Proof kProofs[] = {
    {"attention-mask", 3, 2, 0.17},
    {"attention-unfused", 7, 5, 0.17},
    {"conv-bias-before-batch-norm", 1, 1, 0.02},
    {"dtype-ping-pong", 3, 3, 1.67},
    {"fp32-matmul", 3, 3, 1.05},
    {"gc-pauses", 1, 1, 0.03},
    {"growing-input", 3, 3, 1.02},
    {"host-code", 1, 1, 0.78},
    {"host-compute", 4, 3, 1.52},
    {"host-sync", 2, 2, 0.10},
    {"input-bound", 1, 1, 0.00},
    {"launch-overhead", 2, 2, 0.09},
    {"layout-copies", 4, 4, 0.18},
    {"memory-leak", 1, 1, 0.00},
    {"pageable-copies", 4, 4, 0.09},
    {"pointwise-unfused", 7, 6, 0.51},
    {"recomputed-prefix", 2, 2, 0.54},
    {"recording-distorts", 30, 28, 0.15},
    {"repeated-operators", 17, 14, 0.34},
    {"single-tensor-optimizer", 5, 5, 0.10},
    {"slow-steps", 3, 3, 0.00},
    {"tensor-cores-unused", 1, 1, 0.08},
    {"unused-gradients", 8, 6, 0.72},
    {"zero-grad-fills", 1, 1, 0.02},
};

constexpr double kErrorOfAll = 0.54;  // the same of all programs, whatever the rule
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

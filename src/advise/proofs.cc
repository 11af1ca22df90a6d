#include "advise/proofs.h"

#include <algorithm>
#include <iterator>

namespace firelane::advise {

namespace {

// Made by bench/diagnose/calibrate.py from all recordings of tests/data/library but the held-out half. Where a rule had
// more programs once, whose recordings are not kept (bench/diagnose/kinds_gains.py on two machines), and says the same
// since, the larger error of both counts. Beside those about gains: the leak, the threads and the clones that were
// planted, and true steps of our own recordings within 15% (bench/diagnose/library.md).
constexpr Proof kProofs[] = {
    {"allocator-thrash", 1, 1, 0.00, 0.00},     {"attention-mask", 3, 2, 0.04, 0.08},
    {"attention-unfused", 9, 6, 0.11, 0.13},    {"constant-copies", 5, 5, 0.12, 0.42},
    {"constant-work", 1, 1, 0.00, 0.00},        {"conv-bias-before-batch-norm", 1, 1, 0.05, 0.00},
    {"cpu-oversubscription", 1, 1, 0.00, 0.00}, {"dominant-operator", 4, 4, 0.01, 0.33},
    {"dtype-ping-pong", 3, 3, 0.15, 0.76},      {"fp32-matmul", 3, 3, 0.14, 0.00},
    {"fp64-compute", 8, 8, 0.20, 1.56},         {"gc-pauses", 1, 1, 0.00, 0.03},
    {"growing-input", 3, 2, 0.56, 0.22},        {"host-code", 7, 7, 0.02, 0.39},
    {"host-compute", 5, 4, 0.04, 0.30},         {"host-sync", 7, 7, 0.16, 0.23},
    {"input-bound", 6, 6, 0.00, 0.12},          {"launch-overhead", 2, 2, 0.02, 0.05},
    {"layout-copies", 7, 5, 0.13, 0.23},        {"many-optimizers", 4, 4, 0.00, 0.46},
    {"memory-leak", 1, 1, 0.00, 0.00},          {"padding", 1, 1, 0.02, 0.00},
    {"pageable-copies", 4, 4, 0.04, 0.01},      {"pinned-allocation", 1, 1, 0.00, 0.39},
    {"pointwise-unfused", 10, 9, 0.61, 0.80},   {"recomputed-prefix", 2, 2, 0.12, 0.12},
    {"recording-distorts", 30, 28, 0.15, 0.15}, {"repeated-backward", 8, 8, 0.05, 0.00},
    {"repeated-operators", 27, 27, 0.38, 0.17}, {"single-tensor-optimizer", 5, 5, 0.00, 0.02},
    {"slow-steps", 4, 4, 0.22, 0.00},           {"stream-waits", 3, 2, 0.63, 0.08},
    {"tensor-cores-unused", 1, 1, 0.00, 0.00},  {"unused-gradients", 9, 9, 0.09, 0.08},
    {"whole-copies", 1, 1, 0.00, 0.02},         {"zero-grad-fills", 1, 1, 0.03, 0.00},
};

constexpr Errors kErrorsOfAll = {.below = 0.30, .above = 0.62};  // the same of all programs, whatever the rule
constexpr double kWeightOfAll = 6;                               // as many programs as that counts for
// What the sealed test showed of programs that nothing was tuned with, whose errors are larger than those of the others
// with one program left out (docs/accuracy.md).
constexpr Errors kLeastErrors = {.below = 0.35, .above = 0.6};
constexpr Errors kMostErrors = {.below = 0.8, .above = 1.6};  // a gain that is said is at least a fifth of it

double shrunk(int programs, double own, double of_all, double least, double most) {
  const double error = (programs * own + kWeightOfAll * of_all) / (programs + kWeightOfAll);
  return std::clamp(error, least, most);
}

}  // namespace

const Proof* proof_of(std::string_view rule) {
  const auto* found =
      std::find_if(std::begin(kProofs), std::end(kProofs), [&](const Proof& each) { return each.rule == rule; });
  return found == std::end(kProofs) ? nullptr : found;
}

Errors errors_of(std::string_view rule) {
  static constexpr Proof kNone;
  const Proof* found = proof_of(rule);
  const Proof& proof = found == nullptr ? kNone : *found;
  return {.below = shrunk(proof.programs, proof.below, kErrorsOfAll.below, kLeastErrors.below, kMostErrors.below),
          .above = shrunk(proof.programs, proof.above, kErrorsOfAll.above, kLeastErrors.above, kMostErrors.above)};
}

Confidence most_sure(std::string_view rule) {
  const Proof* proof = proof_of(rule);
  if (proof == nullptr) return Confidence::kMedium;
  const double share = static_cast<double>(proof->right) / std::max(1, proof->programs);
  if (share < 0.6) return Confidence::kLow;
  return proof->programs >= kLeastPrograms && share >= 0.9 ? Confidence::kHigh : Confidence::kMedium;
}

}  // namespace firelane::advise

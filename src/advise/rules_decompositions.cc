// Matrices that are inverted or decomposed although something cheaper computes the part that is used.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "advise/decompositions.h"
#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/op_facts.h"
#include "advise/rule.h"
#include "advise/text.h"

namespace firelane::advise {

namespace {

constexpr double kNamedShare = 0.25;  // of a step: said even where no shortcut is known

// What of an operator stays.
struct Kept {
  double low = 1;  // at worst
  double high = 1;
};

// The call itself and the few launches that take its place.
constexpr int64_t kCallsHighNs = 60'000;
constexpr int64_t kCallsLowNs = 200'000;

Kept kept_of(const Context& context, const Decomposition& one) {
  const auto ns = static_cast<double>(std::max<int64_t>(1, context.model.host_slices.duration_ns[one.op]));
  const auto calls = [&](int64_t calls_ns) { return std::min(1.0, static_cast<double>(calls_ns) / ns); };
  switch (one.use) {
    case DecompositionUse::kLargest:  // products of the matrix with a vector
      return {.low = std::min(1.0, 0.1 + calls(kCallsLowNs)), .high = calls(kCallsHighNs)};
    case DecompositionUse::kFew:  // products with a narrow matrix, whose columns are made orthogonal
      return {.low = 0.5, .high = std::min(1.0, 0.05 + calls(kCallsLowNs))};
    case DecompositionUse::kNoVectors: return {.low = 0.8, .high = 0.3};
    case DecompositionUse::kProduct:  // a least squares solution by QR, or of the normal equations
      return {.low = 0.5, .high = 0.05};
    case DecompositionUse::kUnknown: break;
  }
  return {};
}

// Of the triangular solves of an inverse, as many columns remain as it is multiplied with. On a device, one after
// the other waits for the blocks before it, however few columns there are.
Kept kept_of_columns(const Context& context, const Decomposition& one) {
  const double part = std::min(1.0, one.columns / static_cast<double>(one.matrix[0]));
  const double low = context.has_device_work ? 0.55 : 0.25;
  const double high = context.has_device_work ? 0.35 : 0.1;
  return {.low = low + (1 - low) * part, .high = high + (1 - high) * part};
}

// Share of an inverse by LU: the factorization remains.
Row triangular_part(const Model& model, Row inverse) {
  const HostSlices& host = model.host_slices;
  for (Row row = inverse + 1; row < host.size() && host.lane[row] == host.lane[inverse]; ++row) {
    if (host.start_ns[row] >= host.end_ns(inverse)) break;
    const std::string_view name = name_of_op(model, row);
    if (name == "aten::linalg_lu_solve" || name == "aten::lu_solve") return row;
  }
  return kNoRow;
}

void add_part(const Context& context, Row op, const Kept& kept, Evidence& evidence) {
  if (!context.has_device_work) return evidence.add_call(op, kept.low, kept.high);
  for (const Row work : context.trace.get<launched_work>().during(op)) evidence.add_device(work, kept.low, kept.high);
  evidence.add_host(op, kept.low, kept.high);
}

void add_inverse(const Context& context, const Decomposition& one, Evidence& evidence) {
  // One that is multiplied with as many columns as it has costs the same as a system of equations, and the product.
  const Row systems = triangular_part(context.model, one.op);
  if (systems != kNoRow) {
    add_part(context, systems, kept_of_columns(context, one), evidence);
  } else {
    const Kept kept = kept_of_columns(context, one);
    constexpr double kFactors = 1.0 / 3;  // of an inverse's operations
    add_part(context, one.op, {.low = std::min(1.0, kFactors + kept.low), .high = std::min(1.0, kFactors + kept.high)},
             evidence);
  }
  for (const Row product : one.products) add_part(context, product, {.low = 0.1, .high = 0}, evidence);
}

void add(const Context& context, const Decomposition& one, Evidence& evidence) {
  const bool is_inverse = one.kind == DecompositionKind::kInverse && one.use == DecompositionUse::kProduct;
  if (is_inverse) return add_inverse(context, one, evidence);
  add_part(context, one.op, kept_of(context, one), evidence);
}

struct DecompositionAdvice {
  std::string found;  // after the operator and its shape
  std::string try_text;
  std::string code;
};

DecompositionAdvice advice_of(const Context& context, const Decomposition& one) {
  const bool is_singular = one.kind == DecompositionKind::kSingular;
  const std::string columns = counted(std::max<int64_t>(1, std::llround(one.columns)), "column", "columns");
  switch (one.use) {
    case DecompositionUse::kProduct:
      if (one.kind == DecompositionKind::kInverse) {
        return {"the inverse is multiplied by " + columns + ", and nothing else reads it",
                "solve the linear system instead: that only needs the factors, and is more accurate",
                "y = torch.linalg.solve(a, b)  # instead of torch.linalg.inv(a) @ b; cholesky_solve if a = L @ L.T"};
      }
      return {"the pseudoinverse is multiplied by " + columns + ", and nothing else reads it",
              "solve the least squares problem instead: a pseudoinverse computes all singular values and vectors",
              "y = torch.linalg.lstsq(a, b).solution  # a of full rank; or torch.linalg.solve(a.mT @ a, a.mT @ b)"};
    case DecompositionUse::kLargest:
      return {std::string("only the largest ") + (is_singular ? "singular values" : "eigenvalues") + " are read",
              "the power method approximates the largest by products with a vector, which the next step can start from",
              is_singular
                  ? "v = normalize(w.T @ u); u = normalize(w @ v); sigma = u @ w @ v  # nn.utils.parametrizations"
                    ".spectral_norm does it"
                  : "value, vector = torch.lobpcg(a, k=1)  # a symmetric; or some products with a vector"};
    case DecompositionUse::kFew:
      return {std::string("only a few of the ") + (is_singular ? "singular vectors" : "eigenvectors") + " are read",
              "compute only those, by products with a narrow matrix: an approximation, good where the values fall off "
              "quickly",
              is_singular
                  ? "u, s, v = torch.svd_lowrank(a, q=k)  # q a little larger than what is read, niter=2 or more"
                  : "values, vectors = torch.lobpcg(a, k=k)  # a symmetric, k at most a third of its size"};
    case DecompositionUse::kNoVectors:
      return {"the vectors are never read", "compute only the values",
              is_singular ? "s = torch.linalg.svdvals(a)" : "values = torch.linalg.eigvalsh(a)"};
    case DecompositionUse::kUnknown: break;
  }
  DecompositionAdvice advice{.found = context.has_device_work
                                          ? "many small kernels, one after the other, and calls that wait for them"
                                          : "many passes over the matrix, one after the other",
                             .try_text = "",
                             .code = ""};
  switch (one.kind) {
    case DecompositionKind::kInverse:
      advice.try_text = "solve linear systems with its factors instead, which can be kept; do it less often";
      advice.code = "factors = torch.linalg.lu_factor(a); y = torch.linalg.lu_solve(*factors, b)";
      break;
    case DecompositionKind::kPseudoInverse:
      advice.try_text = "torch.linalg.lstsq for a product with it; for a matrix of full rank, the normal equations";
      advice.code = "y = torch.linalg.lstsq(a, b).solution";
      break;
    case DecompositionKind::kGeneral:
      advice.try_text = "torch.linalg.eigh, if the matrix is symmetric; do it less often";
      advice.code = "values, vectors = torch.linalg.eigh(a)";
      break;
    case DecompositionKind::kSingular:
    case DecompositionKind::kSymmetric:
      advice.try_text =
          "a Cholesky or QR factorization, or a few iterations of products (the power method, Newton-Schulz) where "
          "they suffice; do it less often, on smaller matrices, or for many in one call";
      advice.code = "factor = torch.linalg.cholesky(a.mT @ a)  # instead of singular vectors of a";
      break;
  }
  return advice;
}

Finding finding_of(const Context& context, const std::vector<Decomposition>& all, Evidence& evidence) {
  const Model& model = context.model;
  const Decomposition& longest = *std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return context.took_ns(a.op) < context.took_ns(b.op);
  });
  const DecompositionAdvice advice = advice_of(context, longest);
  Finding finding{.id = "matrix-decomposition",
                  .try_text = advice.try_text,
                  .try_code = advice.code,
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare results and step times",
                  .cause = "matrix-decomposition"};
  evidence.fill(finding);
  finding.events = static_cast<int64_t>(all.size());
  // All of it counts as its cost, not only what would change.
  std::vector<Row> ops;
  int64_t taken_ns = 0;
  for (const Decomposition& each : all) {
    ops.push_back(each.op);
    if (!context.has_device_work) taken_ns += context.took_ns(each.op);
  }
  if (context.has_device_work) {
    for (const Row work : launched_during(model, ops)) taken_ns += model.device_slices.duration_ns[work];
  }
  finding.cost_ns = context.study->per_step(taken_ns);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  const std::string shapes = shapes_text_of_op(model, longest.op);
  finding.title = std::string(name_of_op(model, longest.op)) + " of " + (shapes.empty() ? "matrices" : shapes) +
                  " takes " + short_percent(finding.share_of_step) + " of a step, " +
                  counted(std::max<int64_t>(1, context.study->per_step(finding.events)), "call", "calls") + ": " +
                  advice.found;
  add_longest(finding, model, ops);
  return finding;
}

std::vector<Finding> find_matrix_decomposition(const Context& context) {
  if (context.study == nullptr) return {};
  std::vector<Decomposition> shortcuts;
  std::vector<Decomposition> others;
  for (Decomposition& each : find_decompositions(context)) {
    (each.use == DecompositionUse::kUnknown ? others : shortcuts).push_back(std::move(each));
  }
  std::vector<Finding> out;
  if (!shortcuts.empty()) {
    Evidence evidence(context);
    for (const Decomposition& each : shortcuts) add(context, each, evidence);
    if (!evidence.empty()) out.push_back(finding_of(context, shortcuts, evidence));
  }
  if (others.empty()) return out;
  Evidence evidence(context);
  for (const Decomposition& each : others) add_part(context, each.op, {}, evidence);
  Finding finding = finding_of(context, others, evidence);
  if (finding.share_of_step < kNamedShare) return out;
  finding.said_by_share = true;
  finding.precedence = Precedence::kNamed;
  finding.confidence = Confidence::kLow;
  out.push_back(std::move(finding));
  return out;
}

}  // namespace

std::vector<Rule> decompositions_rules() {
  return {
      {"matrix-decomposition", "waste", 0.05, true,
       "Inverses and decompositions (SVD, eigenvalues) process a matrix many times, step by step, while a GPU\n"
       "mostly waits. Often only a part of the result is used: an inverse for one product, or only the largest of\n"
       "all singular values.\n\n"
       "This finding covers calls of torch.linalg.inv, pinv, svd, eigh and similar functions, and norms based on\n"
       "singular values. Where the recording follows tensors (firelane record does), it depends on how their\n"
       "results are used: an inverse or pseudoinverse that is only multiplied, singular values or eigenvalues of\n"
       "which only the largest is read, only a few of the vectors, vectors that are never read. The gain is a\n"
       "replay with what is then still needed: factoring the matrix and solving for the columns that the inverse is\n"
       "multiplied with, or products of the matrix with a vector. Other cases are reported without a gain if they\n"
       "take a quarter of a step or more.\n\n"
       "What to do: torch.linalg.solve or lstsq instead of a product with an inverse, the power method or\n"
       "torch.svd_lowrank for the largest, svdvals and eigvalsh if no vectors are needed, cholesky for symmetric\n"
       "positive definite matrices.\n\n"
       "When not: the inverse is kept and multiplied with many times, or small singular values matter: the power\n"
       "method needs many iterations where the largest two are nearly equal.",
       find_matrix_decomposition},
  };
}

}  // namespace firelane::advise

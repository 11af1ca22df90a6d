#include "advise/decompositions.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "advise/host_evidence.h"
#include "advise/op_facts.h"
#include "analyze/host/cpu_ops.h"
#include "analyze/steps/phases.h"
#include "analyze/verdict/results.h"
#include "base/text.h"

namespace firelane::advise {

namespace {

constexpr int64_t kLeastSize = 8;   // of a matrix: below, calls cost more than what they compute
constexpr int64_t kFewOfThem = 4;   // so many times more are computed than are read
constexpr size_t kLooksOutFor = 8;  // operators after an inverse, where tensors were not followed

std::optional<DecompositionKind> kind_of_decomposition(std::string_view name) {
  if (!name.starts_with("aten::")) return {};
  name.remove_prefix(6);
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_one_of({"linalg_inv", "linalg_inv_ex", "inverse", "cholesky_inverse"})) return DecompositionKind::kInverse;
  if (is_one_of({"linalg_pinv", "pinverse"})) return DecompositionKind::kPseudoInverse;
  if (is_one_of({"linalg_svd", "svd", "linalg_svdvals", "_linalg_svd"})) return DecompositionKind::kSingular;
  if (is_one_of({"linalg_eigh", "linalg_eigvalsh", "_linalg_eigh"})) return DecompositionKind::kSymmetric;
  if (is_one_of({"linalg_eig", "linalg_eigvals", "_linalg_eigvals"})) return DecompositionKind::kGeneral;
  return {};
}

// Norms and counts that torch computes from singular values.
bool is_made_of_singular_values(std::string_view name) {
  return name == "aten::linalg_matrix_norm" || name == "aten::linalg_norm" || name == "aten::linalg_cond" ||
         name == "aten::linalg_matrix_rank" || name == "aten::norm" || name == "aten::nuclear_norm";
}

bool multiplies(std::string_view name) {
  for (const std::string_view each : {"aten::matmul", "aten::mm", "aten::bmm", "aten::mv", "aten::addmm", "aten::addmv",
                                      "aten::baddbmm", "aten::addbmm", "aten::linear", "aten::einsum"}) {
    if (name == each) return true;
  }
  return false;
}

bool takes_largest(std::string_view name) { return name == "aten::amax" || name == "aten::max"; }

class DecompositionFinder {
 public:
  explicit DecompositionFinder(const Context& context)
      : context_(context),
        model_(context.model),
        host_(model_.host_slices),
        phases_(context.trace.get<analyze::find_phases>()) {
    for (const auto& result : context.trace.get<analyze::find_results>()) results_[result.op].push_back(&result);
  }

  std::vector<Decomposition> all() {
    std::vector<Decomposition> found;
    Row inside_of = kNoRow;  // a decomposition, until it ends
    for (Row row = 0; row < host_.size(); ++row) {
      if (host_.kind[row] != HostKind::kOp || !context_.in_window(host_.start_ns[row])) continue;
      const bool is_inside = inside_of != kNoRow && host_.lane[row] == host_.lane[inside_of] &&
                             host_.start_ns[row] < host_.end_ns(inside_of);
      if (is_inside) continue;
      const std::string_view name = name_of_op(model_, row);
      std::optional<DecompositionKind> kind = kind_of_decomposition(name);
      if (!kind && is_made_of_singular_values(name) && calls_svd(row)) kind = DecompositionKind::kSingular;
      if (!kind) continue;
      inside_of = row;
      const std::vector<analyze::Dims> shapes = shapes_of_op(model_, row);
      if (shapes.empty() || shapes[0].size() < 2) continue;
      Decomposition one{.op = row, .kind = *kind, .matrix = {shapes[0].end() - 2, shapes[0].end()}, .products = {}};
      if (std::min(one.matrix[0], one.matrix[1]) < kLeastSize) continue;
      see_use(one);
      found.push_back(std::move(one));
    }
    return found;
  }

 private:
  bool calls_svd(Row op) const {
    for (Row row = op + 1;
         row < host_.size() && host_.lane[row] == host_.lane[op] && host_.start_ns[row] < host_.end_ns(op); ++row) {
      if (name_of_op(model_, row) == "aten::_linalg_svd") return true;
    }
    return false;
  }

  void see_use(Decomposition& one) const {
    if (one.kind == DecompositionKind::kInverse || one.kind == DecompositionKind::kPseudoInverse) {
      see_products(one);
      return;
    }
    const std::string_view name = name_of_op(model_, one.op);
    if (is_made_of_singular_values(name)) {
      // The order of the norm; the smallest has no such shortcut.
      const std::optional<int64_t> order = number_of_op(model_, one.op, 1);
      if (contains(name, "norm") && order == 2) one.use = DecompositionUse::kLargest;
      return;
    }
    const auto made = results_.find(one.op);
    if (made != results_.end()) see_parts(made->second, one);
  }

  // Reads outside of the backward pass, which needs all of it for itself.
  template <typename Visit>
  void each_reading(const std::vector<const analyze::Result*>& made, const Visit& visit) const {
    for (const analyze::Result* each : made) {
      for (const analyze::Reading& reading : each->readings) {
        if (phases_.host[reading.op] != analyze::Phase::kBackward) visit(*each, reading);
      }
    }
  }

  // Values and vectors are told apart by their sizes: a number for each vector.
  void see_parts(const std::vector<const analyze::Result*>& made, Decomposition& one) const {
    int64_t largest = 1;
    for (const analyze::Result* each : made) largest = std::max(largest, each->bytes);
    const int64_t side = std::min(one.matrix[0], one.matrix[1]);
    const std::string_view name = name_of_op(model_, one.op);
    const bool values_alone = name.ends_with("vals") || name.ends_with("valsh");
    const auto are_values = [&](const analyze::Result& each) {
      return values_alone || each.bytes * std::min<int64_t>(side, kFewOfThem) <= largest;
    };
    double of_values = -1;  // the largest part that is read; below 0: none
    double of_vectors = -1;
    each_reading(made, [&](const analyze::Result& each, const analyze::Reading& reading) {
      const double part =
          takes_largest(name_of_op(model_, reading.op))
              ? 0
              : static_cast<double>(reading.bytes) / static_cast<double>(std::max<int64_t>(1, each.bytes));
      double& of = are_values(each) ? of_values : of_vectors;
      of = std::max(of, part);
    });
    // Gradients of singular values and eigenvalues are made of the vectors.
    const bool differentiates_by_vectors = std::any_of(made.begin(), made.end(), [&](const analyze::Result* each) {
      return !are_values(*each) &&
             std::any_of(each->readings.begin(), each->readings.end(), [&](const analyze::Reading& reading) {
               return phases_.host[reading.op] == analyze::Phase::kBackward;
             });
    });
    constexpr double kFewPart = 1.0 / kFewOfThem;
    const bool vectors_made = !values_alone && std::any_of(made.begin(), made.end(), [&](const analyze::Result* each) {
      return !are_values(*each);
    });
    if (of_values >= 0 && of_values <= kFewPart && of_vectors < 0) {
      one.use = DecompositionUse::kLargest;
    } else if (of_vectors >= 0 && of_vectors <= kFewPart && of_values <= kFewPart) {
      one.use = DecompositionUse::kFew;
    } else if (of_values > kFewPart && of_vectors < 0 && vectors_made && !differentiates_by_vectors) {
      one.use = DecompositionUse::kNoVectors;
    }
  }

  void see_products(Decomposition& one) const {
    std::vector<Row> readers;
    const auto made = results_.find(one.op);
    if (made != results_.end()) {
      each_reading(made->second, [&](const analyze::Result&, const analyze::Reading& reading) {
        if (std::find(readers.begin(), readers.end(), reading.op) == readers.end()) readers.push_back(reading.op);
      });
    }
    if (results_.empty()) readers = next_with_its_shape(one);
    if (readers.empty()) return;
    if (!std::all_of(readers.begin(), readers.end(), [&](Row op) { return multiplies(name_of_op(model_, op)); }))
      return;
    one.use = DecompositionUse::kProduct;
    one.products = readers;
    for (const Row op : readers) one.columns += columns_beside(op, one);
  }

  // Without tensors to follow: the operators after it that take something of its result's shape.
  std::vector<Row> next_with_its_shape(const Decomposition& one) const {
    analyze::Dims result = shapes_of_op(model_, one.op)[0];
    std::swap(result[result.size() - 1], result[result.size() - 2]);
    std::vector<Row> readers;
    size_t seen = 0;
    for (Row row = one.op + 1; row < host_.size() && host_.lane[row] == host_.lane[one.op] && seen < kLooksOutFor;
         ++row) {
      if (!is_outermost_op(host_, row)) continue;
      ++seen;
      if (analyze::is_view_op(name_of_op(model_, row))) continue;
      const std::vector<analyze::Dims> shapes = shapes_of_op(model_, row);
      if (std::find(shapes.begin(), shapes.end(), result) != shapes.end()) readers.push_back(row);
    }
    return readers;
  }

  // Columns (or rows, from the left) that each inverse is multiplied with.
  double columns_beside(Row product, const Decomposition& one) const {
    const analyze::Dims whole = shapes_of_op(model_, one.op)[0];
    const double matrices = elements_of(whole) / std::max(1.0, elements_of(one.matrix));
    double beside = 0;
    bool seen_inverse = false;
    for (const analyze::Dims& each : shapes_of_op(model_, product)) {
      const bool is_inverse = !seen_inverse && each.size() >= 2 && elements_of(each) == elements_of(whole);
      seen_inverse = seen_inverse || is_inverse;
      if (!is_inverse && !each.empty()) beside = std::max(beside, elements_of(each));
    }
    const auto side = static_cast<double>(one.matrix[0]);
    return beside == 0 ? side : beside / std::max(1.0, matrices * side);
  }

  const Context& context_;
  const Model& model_;
  const HostSlices& host_;
  const analyze::Phases& phases_;
  std::unordered_map<Row, std::vector<const analyze::Result*>> results_;
};

}  // namespace

std::vector<Decomposition> find_decompositions(const Context& context) { return DecompositionFinder(context).all(); }

}  // namespace firelane::advise

#include "advise/rule.h"

#include <algorithm>

namespace firelane::advise {

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    // clang-format off: one a line, so that two people can add one each
    for (const auto family : {
             input_rules,
             host_rules,
             host_code_rules,
             loops_rules,
             training_rules,
             optimizers_rules,
             slow_steps_rules,
             compile_rules,
             settings_rules,
             anomaly_rules,
             one_time_rules,
             npu_rules,
             kernels_rules,
             attention_rules,
             convolutions_rules,
             generation_rules,
             gradients_rules,
             dense_gradients_rules,
             adapters_rules,
             copied_modules_rules,
             full_sort_rules,
             repeated_keys_rules,
             fourier_rules,
             decompositions_rules,
             long_kernels_rules,
             row_indexing_rules,
             denormals_rules,
             device_unused_rules,
             product_order_rules,
             written_out_rules,
             repeated_rows_rules,
             structured_rules,
             discarded_rules,
             unread_rules,
             waste_rules,
             padding_rules,
             again_rules,
             constant_work_rules,
             same_inputs_rules,
             unchanged_rules,
             recomputed_rules,
             streams_rules,
             memory_rules,
             device_rules,
             growth_rules,
             kept_graph_rules,
             copy_runs_rules,
             wide_copies_rules,
             dominant_rules,
         }) {
      for (const Rule& rule : family()) all.push_back(rule);
    }
    // clang-format on
    return all;
  }();
  return rules;
}

const Rule* find_rule(std::string_view id) {
  const auto& rules = all_rules();
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& each) { return each.id == id; });
  return rule == rules.end() ? nullptr : &*rule;
}

std::string_view name_of(Confidence confidence) {
  return confidence == Confidence::kHigh ? "high" : confidence == Confidence::kMedium ? "medium" : "low";
}

}  // namespace firelane::advise

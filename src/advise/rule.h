// The table of rules: each looks at a case and says what it finds.
//
// To add rules: write advise/rules_FAMILY.cc with `std::vector<Rule> FAMILY_rules()`, declare it
// below, add its line to all_rules() in rule.cc, and test it in rules_FAMILY_test.cc: with the
// fault it is found, with the fault taken out it is not.
//
// A rule returns what it measured; diagnose() drops findings below the rule's floor, ranks by
// gain and merges those of one cause. So a rule needs no threshold of its own for importance.
#pragma once

#include <string_view>
#include <vector>

#include "advise/context.h"
#include "advise/finding.h"

namespace firelane::advise {

struct Rule {
  std::string_view id;      // kebab-case, the id of its findings
  std::string_view family;  // "input", "host", "kernels", "memory", ...
  // A finding counts when it saves (the middle of its gain), or for findings that save no time by
  // themselves (memory, distortion) costs, at least this share of a step.
  double floor_share;
  bool about_time;               // false: kept whatever its gain, ranked after those that save time
  std::string_view explanation;  // long form for `firelane explain`: what it means, why it costs, what to do, when not
  std::vector<Finding> (*find)(const Context& context);
};

const std::vector<Rule>& all_rules();
const Rule* find_rule(std::string_view id);

std::vector<Rule> input_rules();       // waiting for data, copies to the device
std::vector<Rule> host_rules();        // launches, syncs, recording
std::vector<Rule> host_code_rules();   // operators on the CPU, garbage collection, code between operators
std::vector<Rule> loops_rules();       // the same operators many times in a step
std::vector<Rule> training_rules();    // optimizer, zero_grad, communication
std::vector<Rule> optimizers_rules();  // optimizers that step one after the other
std::vector<Rule> slow_steps_rules();  // steps that stand out, and what coincides
std::vector<Rule> compile_rules();     // what torch.compile says about itself
std::vector<Rule> settings_rules();    // threads, other processes, switches
std::vector<Rule> anomaly_rules();     // autograd checks every node for NaN
std::vector<Rule> one_time_rules();    // loading, compiling, first calls, first memory
std::vector<Rule> npu_rules();         // Ascend: operators that CANN compiles

std::vector<Rule> kernels_rules();          // precision, tensor cores, fusion, casts
std::vector<Rule> attention_rules();        // attention by hand
std::vector<Rule> convolutions_rules();     // needless biases, layouts
std::vector<Rule> generation_rules();       // recomputed prefixes, caches that are copied
std::vector<Rule> gradients_rules();        // gradients that nobody uses
std::vector<Rule> dense_gradients_rules();  // gradients of tables with a value for every row
std::vector<Rule> adapters_rules();         // low-rank adapters beside their layers
std::vector<Rule> copied_modules_rules();   // models that are copied whole
std::vector<Rule> repeated_keys_rules();    // keys and values written out for each head
std::vector<Rule> full_sort_rules();        // all is sorted, and little is used
std::vector<Rule> fourier_rules();          // lengths without a fast plan
std::vector<Rule> decompositions_rules();   // inverses and singular values, and what is used of them
std::vector<Rule> long_kernels_rules();     // convolutions that Fourier transforms compute with less work
std::vector<Rule> row_indexing_rules();     // rows that are added to few others, or taken with brackets
std::vector<Rule> denormals_rules();        // arithmetic that takes many times as long as copying
std::vector<Rule> device_unused_rules();    // a GPU is there, and the program computes on the CPU
std::vector<Rule> product_order_rules();    // products in a costly order, or one by one with the same matrix
std::vector<Rule> written_out_rules();      // pairs and windows that are written out to be summed
std::vector<Rule> repeated_rows_rules();    // the same for rows that are copies of each other
std::vector<Rule> structured_rules();       // products with one-hot, diagonal and triangular matrices
std::vector<Rule> discarded_rules();        // results of which little is read
std::vector<Rule> unread_rules();           // results of which the order alone is read
std::vector<Rule> waste_rules();            // masks that cost the fast attention
std::vector<Rule> padding_rules();          // positions of a batch that hold nothing
std::vector<Rule> device_rules();           // collectives, grids, pinned memory
std::vector<Rule> again_rules();            // passes, copies and constants that were there before
std::vector<Rule> constant_work_rules();    // constants that are computed again
std::vector<Rule> same_inputs_rules();      // parts that run again on the same inputs
std::vector<Rule> unchanged_rules();        // work that every step does again on what no step changes
std::vector<Rule> recomputed_rules();       // activations that the backward pass computes again
std::vector<Rule> streams_rules();          // streams that wait for each other
std::vector<Rule> memory_rules();           // limit, spikes, growth, fragmentation, the allocator
std::vector<Rule> growth_rules();           // steps that take longer and longer
std::vector<Rule> kept_graph_rules();       // backward passes through the graphs of earlier steps
std::vector<Rule> copy_runs_rules();        // many copies between host and device in a row
std::vector<Rule> wide_copies_rules();      // copies in a wider type than needed
std::vector<Rule> dominant_rules();         // one operator, kernel or size that takes most of a step

}  // namespace firelane::advise

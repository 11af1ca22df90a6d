#include "analyze/compute/fusion.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "analyze/device/device_peaks.h"
#include "analyze/ops/op_tensors.h"
#include "base/text.h"

namespace firelane::analyze {

namespace {

struct OpFacts {
  int64_t elements = 0;
  int64_t element_bytes = 0;
  int64_t bytes = 0;
  std::vector<OpTensor> inputs;  // that are read
  bool reads_twice = false;      // statistics over all rows: they must be complete before any row is done
};

// Share of a device's bandwidth that fused kernels reach, and the time of one however little it does (H200, Inductor).
constexpr double kReached = 0.7;
constexpr double kLeastKernelNs = 2'000;
// For large inputs that do not come from the kernel before: the others were read or made in the chain already.
constexpr double kFromOutside = 0.5;

// What matters of one fusible kernel.
struct Member {
  Row slice = kNoRow;
  Phase phase = Phase::kNone;
  KernelClass kernel_class = KernelClass::kOther;
  int64_t elements = 0;       // of its largest input; what it writes, unless it reduces
  int64_t between_bytes = 0;  // what it writes for the next one
  int64_t bytes = 0;          // its traffic
  const OpFacts* facts = nullptr;
};

class Finder {
 public:
  explicit Finder(const Model& model) : model_(model), phases_(find_phases(model)), traits_(model) {}

  FusionTable run() {
    for (size_t lane = 0; lane < model_.lanes.size(); ++lane) {
      for (Row row = model_.lanes.device_begin[lane]; row < model_.lanes.device_end[lane]; ++row) visit(row);
      flush();
    }
    finish();
    return std::move(table_);
  }

 private:
  void visit(Row row) {
    const DeviceSlices& slices = model_.device_slices;
    if (!is_device_work(slices.kind[row])) return;
    if (slices.kind[row] == DeviceKind::kSet) return;  // a few bytes for a semaphore: does not part a chain
    if (slices.kind[row] != DeviceKind::kKernel) return flush();
    ++table_.kernels;
    const KernelTraits& traits = traits_.of(slices.name[row]);
    if (!is_fusible_class(traits.kernel_class)) return flush();
    if (contains(model_.text(slices.name[row]), "splitK")) return flush();  // the end of a matmul
    ++table_.fusible_kernels;
    table_.fusible_ns += slices.duration_ns[row];
    const OpFacts& facts = facts_of(slices.op[row], traits.kernel_class);
    if (facts.elements == 0) {
      ++table_.without_shapes;
      return flush();
    }
    const Member member{.slice = row,
                        .phase = phases_.device[row],
                        .kernel_class = traits.kernel_class,
                        .elements = facts.elements,
                        .between_bytes = facts.elements * facts.element_bytes,
                        .bytes = facts.bytes,
                        .facts = &facts};
    if (!run_.empty() && !follows(member)) flush();
    run_.push_back(member);
    for (const OpTensor& tensor : facts.inputs) sizes_.push_back(tensor.elements);
  }

  // Whether it reads what the chain has read or made, by its size.
  bool follows(const Member& next) const {
    if (run_.back().phase != next.phase) return false;
    return std::any_of(next.facts->inputs.begin(), next.facts->inputs.end(), [&](const OpTensor& tensor) {
      return tensor.elements > 1 && std::find(sizes_.begin(), sizes_.end(), tensor.elements) != sizes_.end();
    });
  }

  const OpFacts& facts_of(Row op, KernelClass kernel_class) {
    static const OpFacts kNone;
    if (op == kNoRow || model_.host_slices.kind[op] != HostKind::kOp) return kNone;
    const Row detail = model_.op_detail(op);
    if (detail == kNoRow || model_.op_details.input_dims[detail] == kNoString) return kNone;
    const std::string key = std::to_string(static_cast<uint32_t>(model_.host_slices.name[op])) + "," +
                            std::to_string(static_cast<uint32_t>(model_.op_details.input_dims[detail])) + "," +
                            std::to_string(static_cast<uint32_t>(model_.op_details.input_types[detail]));
    const auto [found, is_new] = facts_.try_emplace(key);
    if (!is_new) return found->second;
    std::vector<OpTensor> inputs = input_tensors(model_, op);
    for (const OpTensor& tensor : inputs) {
      if (tensor.elements > found->second.elements) {
        found->second = {.elements = tensor.elements, .element_bytes = tensor.element_bytes};
      }
    }
    const std::string_view name = model_.text(model_.host_slices.name[op]);
    // copy_ is told its destination first, and casts: what comes out is of that type.
    if (name == "aten::copy_" && !inputs.empty()) found->second.element_bytes = inputs.front().element_bytes;
    const int64_t bytes = op_bytes(name, kernel_class, inputs, 0);
    found->second.bytes = bytes == kNoNumber ? 0 : bytes;
    found->second.reads_twice = contains(name, "batch_norm");
    if (name == "aten::copy_" && inputs.size() > 1) inputs.erase(inputs.begin());
    std::erase_if(inputs, [](const OpTensor& tensor) { return tensor.is_output; });
    found->second.inputs = std::move(inputs);
    return found->second;
  }

  void flush() {
    if (run_.size() > 1) add_chain();
    run_.clear();
    sizes_.clear();
  }

  // What one kernel in place of the run reads and writes: what comes from outside, and the result.
  int64_t fused_bytes() const {
    int64_t most = 0;
    for (const Member& member : run_) most = std::max(most, member.elements);
    double bytes = 0;
    bool is_first = true;
    Row last_twice = kNoRow;
    for (const Member& member : run_) {
      double all = 0;
      double largest = 0;
      for (const OpTensor& tensor : member.facts->inputs) {
        if (2 * tensor.elements < most) continue;
        const auto size = static_cast<double>(tensor.elements * tensor.element_bytes);
        all += size;
        largest = std::max(largest, size);
      }
      if (all == 0) continue;
      bytes += is_first ? all : kFromOutside * (all - largest);
      const Row op = model_.device_slices.op[member.slice];
      if (member.facts->reads_twice && op != last_twice) {
        bytes += largest;
        last_twice = op;
      }
      is_first = false;
    }
    for (size_t i = run_.size(); i-- > 0;) {
      if (run_[i].kernel_class == KernelClass::kReduction) continue;
      bytes += static_cast<double>(run_[i].between_bytes);
      break;
    }
    return static_cast<int64_t>(bytes);
  }

  void add_chain() {
    const DeviceSlices& slices = model_.device_slices;
    std::string key =
        std::to_string(static_cast<int>(run_.front().phase)) + ":" + std::to_string(run_.front().elements);
    for (const Member& member : run_) {
      key += "," + std::to_string(static_cast<uint32_t>(model_.host_slices.name[slices.op[member.slice]]));
      key += "/" + std::to_string(static_cast<uint32_t>(slices.name[member.slice]));
    }
    const auto [found, is_new] = chain_of_.try_emplace(key, table_.chains.size());
    if (is_new) {
      FusionChain& chain = table_.chains.emplace_back();
      chain.phase = run_.front().phase;
      chain.elements = run_.front().elements;
      chain.dims = model_.op_details.input_dims[model_.op_detail(slices.op[run_.front().slice])];
      for (const Member& member : run_) {
        chain.members.push_back({model_.host_slices.name[slices.op[member.slice]], slices.name[member.slice]});
        chain.example.push_back(member.slice);
      }
    }
    FusionChain& chain = table_.chains[found->second];
    ++chain.times;
    int64_t device_ns = 0;
    int64_t longest_ns = 0;
    for (size_t i = 0; i < run_.size(); ++i) {
      const int64_t ns = slices.duration_ns[run_[i].slice];
      device_ns += ns;
      longest_ns = std::max(longest_ns, ns);
      chain.bytes += run_[i].bytes;
      chain.slices.push_back(run_[i].slice);
    }
    chain.fused_bytes += fused_bytes();
    chain.device_ns += device_ns;
    chain.longest_ns += longest_ns;
    chain.saved_launches += static_cast<int64_t>(run_.size()) - 1;
    table_.chained_kernels += static_cast<int64_t>(run_.size());
  }

  void finish() {
    for (FusionChain& chain : table_.chains) {
      chain.fused_bytes = std::min(chain.fused_bytes, chain.bytes);
      chain.saved_bytes = chain.bytes - chain.fused_bytes;
      const DevicePeaks* peaks = peaks_of(model_, model_.device_slices.device[chain.example.front()]);
      const double traffic_ns = peaks == nullptr
                                    ? static_cast<double>(chain.longest_ns)
                                    : static_cast<double>(chain.fused_bytes) / (kReached * peaks->bandwidth_gb_s);
      const auto at_least_ns =
          static_cast<int64_t>(std::max(traffic_ns, kLeastKernelNs * static_cast<double>(chain.times)));
      chain.saved_ns = std::max<int64_t>(0, chain.device_ns - at_least_ns);
    }
    std::sort(table_.chains.begin(), table_.chains.end(), [](const FusionChain& a, const FusionChain& b) {
      if (a.saved_ns != b.saved_ns) return a.saved_ns > b.saved_ns;
      return a.example.front() < b.example.front();
    });
  }

  const Model& model_;
  const Phases phases_;
  TraitsOfNames traits_;
  std::vector<Member> run_;
  std::vector<int64_t> sizes_;  // of all that the run has read
  std::unordered_map<std::string, OpFacts> facts_;
  std::unordered_map<std::string, size_t> chain_of_;
  FusionTable table_;
};

}  // namespace

FusionTable fusion_table(const Model& model) { return Finder(model).run(); }

}  // namespace firelane::analyze

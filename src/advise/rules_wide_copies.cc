// Data that is copied to the device in a wider dtype than it has, or than it is used in.
#include <algorithm>
#include <string>
#include <vector>

#include "advise/evidence.h"
#include "advise/host_evidence.h"
#include "advise/rule.h"
#include "advise/text.h"
#include "advise/wide_copies.h"
#include "analyze/ops/op_tensors.h"

namespace firelane::advise {

namespace {

std::vector<Finding> find_wide_copies(const Context& context) {
  if (context.study == nullptr) return {};
  const Model& model = context.model;
  const auto& all = context.trace.get<wide_copies>();
  if (all.empty()) return {};
  constexpr double kCalled = 0.05;  // what calling a copy takes stays
  Evidence evidence(context);
  std::vector<Row> device_ops;
  const WideCopy* largest = nullptr;
  int64_t bytes = 0;
  int64_t narrow = 0;
  int64_t host_ns = 0;
  for (const WideCopy& each : all) {
    evidence.add_device(each.copy, std::min(1.0, each.keep + kCalled), each.keep);
    if (model.copy_kinds(each.copy).touches(MemoryKind::kPageable)) {
      const Row call = model.device_slices.launch[each.copy];
      evidence.add_host(call, std::min(1.0, each.keep + kCalled), each.keep);
    }
    if (each.on_host) {
      evidence.add_host(each.op, kCalled, 0);
      host_ns += context.took_ns(each.op);
    } else {
      device_ops.push_back(each.op);
    }
    bytes += each.bytes;
    narrow += static_cast<int64_t>(static_cast<double>(each.bytes) * each.keep);
    if (largest == nullptr || each.bytes > largest->bytes) largest = &each;
  }
  // Without doubles nobody has to make floats of them; of what was widened on the host, the device now does that.
  for (const Row work : launched_during(model, device_ops)) evidence.add_beside(work, 1, 0);
  if (evidence.empty()) return {};
  const std::vector<analyze::OpTensor> tensors = analyze::input_tensors(model, largest->op);
  const auto bits = [](const analyze::OpTensor& tensor) { return std::to_string(8 * tensor.element_bytes) + "-bit"; };
  Finding finding{.id = "wide-copies",
                  .confidence = Confidence::kMedium,
                  .confirm_by = "compare step times and results",
                  .cause = "wide-copies"};
  evidence.fill(finding);
  finding.cost_ns += context.study->per_step(host_ns);
  finding.share_of_step = context.share_of_step(finding.cost_ns);
  finding.events = static_cast<int64_t>(all.size());
  finding.title = "every step sends " + short_bytes(context.study->per_step(bytes)) + " to the device where " +
                  short_bytes(context.study->per_step(narrow)) + " would do: ";
  if (largest->on_host) {
    finding.title += bits(tensors[1]) + " numbers are widened to " + bits(tensors[0]) + " on the host";
    finding.try_text = "send the data in the type that it has, and convert it on the device";
    finding.try_code = "x = images.to(device, non_blocking=True).float().div_(255)  # images: uint8";
  } else {
    finding.title += bits(tensors[1]) + " numbers are narrowed to " + bits(tensors[0]) + " once they are there";
    finding.try_text = "convert the data on the host once, where it is stored, and send it in the type that is used";
    finding.try_code = "torch.from_numpy(array.astype(np.float32))  # NumPy makes float64 unless it is told otherwise";
  }
  finding.title += ", " + short_percent(finding.share_of_step) + " of a step";
  return {finding};
}

}  // namespace

std::vector<Rule> wide_copies_rules() {
  return {
      {"wide-copies", "input", 0.03, true,
       "Data is copied to the device in a wider dtype than necessary: uint8 images that are converted to float on\n"
       "the host, which is four times as many bytes; or NumPy's default float64, which is converted to float32 on\n"
       "the device. The link is much slower than the device's own memory, and converting there costs almost\n"
       "nothing.\n\n"
       "This finding covers copies to the device of 256 KiB or more whose data was widened on the host in the same\n"
       "step, or is narrowed on the device afterwards (float64 only: 64-bit ids are needed as they are), matched by "
       "the size of the aten::copy_\n"
       "that converts. Needs shapes. The gain is a replay in which the copy is shorter in proportion to its bytes,\n"
       "without the conversion on the host.\n\n"
       "What to do: keep the data in its narrow dtype until it is on the device, and convert it there; store and\n"
       "load float32 instead of float64.\n\n"
       "When not: the host needs the wide dtype itself.",
       find_wide_copies},
  };
}

}  // namespace firelane::advise

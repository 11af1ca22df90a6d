#include "advise/dominant_words.h"

#include "analyze/steps/phases.h"

namespace firelane::advise {

using analyze::KernelClass;

bool is_meant_to_dominate(KernelClass what) {
  return what == KernelClass::kMatmul || what == KernelClass::kConvolution || what == KernelClass::kAttention;
}

bool joins(std::string_view name) {
  return name == "aten::cat" || name == "aten::stack" || name.find("CatArray") != std::string_view::npos;
}
bool looks_up(std::string_view name) {
  for (const std::string_view part : {"sort", "topk", "unique", "nonzero", "index", "scatter", "gather", "embedding"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}
Advice advice_for(KernelClass what, std::string_view name) {
  if (name.find("sort") != std::string_view::npos || name.find("unique") != std::string_view::npos) {
    return {
        "the same order every time: sort what does not change (edges, a vocabulary, a mask) once, before the loop; or "
        "topk would be enough",
        "order = keys.argsort()  # once; and x[order] in the loop"};
  }
  if (joins(name)) {
    return {
        "an input that grows from call to call and is copied whole each time; collect the parts in a list and join "
        "them once, or write into memory of the final size",
        "parts.append(x)  # and torch.cat(parts) once, after the loop"};
  }
  if (looks_up(name)) what = KernelClass::kIndexing;
  switch (what) {
    case KernelClass::kConvolution:
      return {
          "a layout or an algorithm that does not fit (channels_last, cudnn.benchmark), few channels on a large "
          "image, or a kernel that is larger than necessary",
          "model = model.to(memory_format=torch.channels_last)"};
    case KernelClass::kMatmul:
      return {"sizes that are too small or not multiples of 8, a wider type than necessary, or a batch of one",
              "with torch.autocast(device_type, dtype=torch.bfloat16): ..."};
    case KernelClass::kAttention:
      return {"sequences that are longer than necessary: padding, or no window",
              "batches of samples of similar length"};
    case KernelClass::kIndexing:
      return {
          "an algorithm that does more than necessary: sorting where topk would be enough, indices with many "
          "duplicates, a "
          "dense gradient of a large table",
          "nn.Embedding(n, d, sparse=True)"};
    case KernelClass::kPointwise:
    case KernelClass::kReduction:
    case KernelClass::kNormalization:
    case KernelClass::kForeach:
      return {
          "tensors that are larger than necessary (a wider type, a copy, a broadcast that is written out), or several "
          "passes over memory instead of one",
          "model = torch.compile(model)"};
    default:
      return {
          "an input that grows, a layout that makes it copy, a batch that is too small, or an algorithm that does more "
          "than "
          "necessary: look at the shapes it is called with",
          "with torch.profiler.record_function(\"part\"): ..."};
  }
}

std::string caller_of(const Model& model, Row op) {
  const HostSlices& host = model.host_slices;
  std::string function;
  for (Row row = op; row != kNoRow; row = host.parent[row]) {
    if (analyze::is_module_slice(model, row)) return std::string(analyze::module_name(model, row));
    if (host.kind[row] == HostKind::kPython && function.empty()) function = model.text(host.name[row]);
    const Row detail = host.kind[row] == HostKind::kOp ? model.op_detail(row) : kNoRow;
    const Row forward = detail == kNoRow ? kNoRow : model.op_details.forward[detail];
    if (forward != kNoRow && forward != row) {
      const std::string of_forward = caller_of(model, forward);
      if (!of_forward.empty()) return of_forward;
    }
  }
  return function;
}

std::string dims_text(const Model& model, Row op) {
  const Row detail = op == kNoRow ? kNoRow : model.op_detail(op);
  const StringId dims = detail == kNoRow ? kNoString : model.op_details.input_dims[detail];
  if (dims == kNoString) return "";
  const std::string text(model.text(dims));
  constexpr size_t kLongest = 60;
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

}  // namespace firelane::advise

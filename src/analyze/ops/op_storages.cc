#include "analyze/ops/op_storages.h"

#include <charconv>
#include <system_error>

namespace firelane::analyze {

std::vector<StorageInput> parse_storages(std::string_view json) {
  std::vector<StorageInput> inputs;
  const auto number = [&](size_t& at) {
    while (at < json.size() && (json[at] == ' ' || json[at] == ',')) ++at;
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(json.data() + at, json.data() + json.size(), value);
    at = static_cast<size_t>(end - json.data());
    return error == std::errc() ? value : 0;
  };
  int depth = 0;
  size_t place = 0;
  for (size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == ']') --depth;
    if (c == ',' && depth == 1) ++place;
    if (c != '[') continue;
    ++depth;
    if (at + 1 >= json.size() || json[at + 1] < '0' || json[at + 1] > '9') continue;
    ++at;
    StorageInput input{.place = place, .in_list = depth > 2};
    input.tensor = number(at);
    input.storage = number(at);
    input.on_cpu = number(at) == 0;
    const size_t close = json.find(']', at);
    if (close == std::string_view::npos) break;
    const std::string_view rest = json.substr(at, close - at);
    const size_t quote = rest.find('"');
    if (quote != std::string_view::npos) input.type = rest.substr(quote + 1, rest.find('"', quote + 1) - quote - 1);
    if (input.storage != 0) inputs.push_back(input);
    --depth;
    at = close;
  }
  return inputs;
}

std::vector<StorageInput> storages_of_op(const Model& model, Row op) {
  const Row detail = model.op_detail(op);
  if (detail == kNoRow || model.op_details.tensors[detail] == kNoString) return {};
  return parse_storages(model.text(model.op_details.tensors[detail]));
}

}  // namespace firelane::analyze

#include "analyze/ops/op_inputs.h"
#include "compare/run/pieces.h"

namespace firelane::compare {

namespace {

// Where a model's input enters, the surest first: indices of an embedding [batch, tokens], images, rows of features.
// Compiled programs call aten::convolution itself.
struct Entrance {
  std::string_view op;
  size_t least_dims;
  size_t input;  // which of the op's inputs
  std::string_view what;
};
constexpr Entrance kEntrances[] = {{"aten::embedding", 2, 1, "sequences"}, {"aten::conv2d", 4, 0, "images"},
                                   {"aten::conv1d", 3, 0, "signals"},      {"aten::conv3d", 5, 0, "volumes"},
                                   {"aten::convolution", 4, 0, "images"},  {"aten::linear", 2, 0, "rows"},
                                   {"aten::addmm", 2, 1, "matrix rows"},   {"aten::mm", 2, 0, "matrix rows"}};

}  // namespace

BatchSize batch_size(const Model& model, const analyze::Study& study) {
  const HostSlices& host = model.host_slices;
  const analyze::Interval window = study.steps.window;
  for (const Entrance& entrance : kEntrances) {
    StringId first = kNoString;
    int64_t first_ns = INT64_MAX;
    for (Row detail = 0; detail < model.op_details.size(); ++detail) {
      const Row row = model.op_details.slice[detail];
      if (row == kNoRow || model.op_details.input_dims[detail] == kNoString) continue;
      if (host.start_ns[row] < window.start_ns || host.start_ns[row] >= window.end_ns) continue;
      if (model.text(host.name[row]) != entrance.op) continue;
      if (host.start_ns[row] < first_ns) {
        first_ns = host.start_ns[row];
        first = model.op_details.input_dims[detail];
      }
    }
    if (first == kNoString) continue;
    const std::vector<analyze::Dims> dims = analyze::parse_input_dims(model.text(first));
    if (dims.size() <= entrance.input || dims[entrance.input].size() < entrance.least_dims) continue;
    const analyze::Dims& shape = dims[entrance.input];
    BatchSize out{.samples = shape[0], .what = entrance.what};
    if (entrance.op == "aten::embedding") out.tokens = shape[0] * shape[1];
    return out;
  }
  return {};
}

}  // namespace firelane::compare

// Programs on a CPU whose operators say which memory they read and allocate: input for tests of rules on the graph of
// tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "advise/testing.h"

namespace firelane::advise {

// Without memory: a number among an operator's inputs.
struct WrittenTensor {
  uint64_t storage = 0;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // empty: as the shape says

  WrittenTensor seen_as(std::vector<int64_t> other, std::vector<int64_t> steps = {}) const {
    return {.storage = storage, .dims = std::move(other), .strides = std::move(steps)};
  }
  int64_t bytes() const {
    int64_t count = 4;
    for (const int64_t size : dims) count *= size;
    return count;
  }
};

class TensorProgram : public WrittenProgram<TensorProgram> {
 public:
  // fp32 numbers from before the recording.
  WrittenTensor weight(std::vector<int64_t> dims) { return {next(), std::move(dims), {}}; }

  // Makes a tensor of that shape. `numbers`: JSON, one for each input.
  WrittenTensor op(std::string_view name, double us, const std::vector<WrittenTensor>& inputs,
                   std::vector<int64_t> made, std::string_view numbers = {}) {
    const WrittenTensor out{next(), std::move(made), {}};
    last_us_ = at_;
    write(name, us, inputs, numbers);
    builder_.memory({.at_us = at_ - us - 1, .bytes = out.bytes(), .address = out.storage});
    owned_.push_back(out);
    return out;
  }
  // An operator that calls what comes next, for so long.
  void calls(std::string_view name, double us) {
    builder_.op(name, {.start_us = at_, .end_us = at_ + us});
    at_ += 1;
  }
  // Writes its first input.
  void in_place(std::string_view name, double us, const std::vector<WrittenTensor>& inputs,
                std::string_view numbers = {}) {
    write(name, us, inputs, numbers);
  }
  // Memory that nobody has written yet.
  WrittenTensor empty(std::vector<int64_t> dims) {
    const WrittenTensor out{next(), std::move(dims), {}};
    builder_.memory({.at_us = at_, .bytes = out.bytes(), .address = out.storage});
    owned_.push_back(out);
    at_ += 1;
    return out;
  }
  // A copy of a view, as reshape, clone and casts make it.
  WrittenTensor copy(double us, const WrittenTensor& from) {
    const WrittenTensor out = empty(from.dims);
    in_place("aten::copy_", us, {out, from}, R"(["", "", "False"])");
    return out;
  }
  // When the last operator that made something began.
  double last_us() const { return last_us_; }
  // A node of the backward pass, which calls one operator; of the operator that began at that time.
  WrittenTensor backward(std::string_view node, double forward_us, std::string_view name, double us,
                         const std::vector<WrittenTensor>& inputs, std::vector<int64_t> made) {
    builder_.op(node, {.start_us = at_, .end_us = at_ + us + 2});
    builder_.flow("fwdbwd", ++flow_, {.start_us = forward_us}, {.start_us = at_});
    at_ += 1;
    const WrittenTensor out{next(), std::move(made), {}};
    write(name, us, inputs, {});
    builder_.memory({.at_us = at_ - us - 1, .bytes = out.bytes(), .address = out.storage});
    owned_.push_back(out);
    at_ += 2;
    return out;
  }
  // All that was made is given back.
  TensorProgram& finish_step() {
    for (const WrittenTensor& each : owned_) {
      builder_.memory({.at_us = at_, .bytes = -each.bytes(), .address = each.storage});
      at_ += 0.1;
    }
    owned_.clear();
    return end_step();
  }

 private:
  static std::string list(const std::vector<int64_t>& numbers) {
    std::string text = "[";
    for (size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
    return text + "]";
  }
  static std::vector<int64_t> dense(const std::vector<int64_t>& dims) {
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
    return strides;
  }

  void write(std::string_view name, double us, const std::vector<WrittenTensor>& inputs, std::string_view numbers) {
    std::string dims;
    std::string strides;
    std::string types;
    std::string tensors;
    for (const WrittenTensor& each : inputs) {
      const char* comma = dims.empty() ? "" : ", ";
      dims += comma + list(each.dims);
      strides += comma + list(each.strides.empty() ? dense(each.dims) : each.strides);
      types += std::string(comma) + (each.storage == 0 ? "\"Scalar\"" : "\"float\"");
      if (each.storage == 0) {
        tensors += std::string(comma) + "null";
        continue;
      }
      tensors += std::string(comma) + "[" + std::to_string(++tensor_) + ", " + std::to_string(each.storage) +
                 ", 0, -1, \"float\"]";
    }
    dims = "[" + dims + "]";
    strides = "[" + strides + "]";
    types = "[" + types + "]";
    tensors = "[" + tensors + "]";
    builder_.op(name, {.start_us = at_,
                       .end_us = at_ + us,
                       .dims = dims,
                       .types = types,
                       .strides = strides,
                       .concrete = numbers,
                       .tensors = tensors});
    at_ += us + 2;
  }
  uint64_t next() { return next_ += 0x1000'0000; }

  std::vector<WrittenTensor> owned_;
  uint64_t next_ = 0x1000'0000;
  uint64_t tensor_ = 0;
  int64_t flow_ = 0;
  double last_us_ = 0;
};

}  // namespace firelane::advise

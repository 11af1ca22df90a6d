#include "import/lane/inputs_json.h"

#include <array>
#include <cstring>

#include "base/json_writer.h"
#include "base/varint.h"
#include "format/layout.h"

namespace firelane::importer {
namespace {

// By number; torch appends, so an older list stays right.
constexpr std::array<std::string_view, 46> kDtypes = {"unsigned char",
                                                      "signed char",
                                                      "short int",
                                                      "int",
                                                      "long int",
                                                      "c10::Half",
                                                      "float",
                                                      "double",
                                                      "c10::complex<c10::Half>",
                                                      "c10::complex<float>",
                                                      "c10::complex<double>",
                                                      "bool",
                                                      "c10::qint8",
                                                      "c10::quint8",
                                                      "c10::qint32",
                                                      "c10::BFloat16",
                                                      "c10::quint4x2",
                                                      "c10::quint2x4",
                                                      "c10::bits1x8",
                                                      "c10::bits2x4",
                                                      "c10::bits4x2",
                                                      "c10::bits8",
                                                      "c10::bits16",
                                                      "c10::Float8_e5m2",
                                                      "c10::Float8_e4m3fn",
                                                      "c10::Float8_e5m2fnuz",
                                                      "c10::Float8_e4m3fnuz",
                                                      "short unsigned int",
                                                      "unsigned int",
                                                      "long unsigned int",
                                                      "uint1",
                                                      "uint2",
                                                      "uint3",
                                                      "uint4",
                                                      "uint5",
                                                      "uint6",
                                                      "uint7",
                                                      "int1",
                                                      "int2",
                                                      "int3",
                                                      "int4",
                                                      "int5",
                                                      "int6",
                                                      "int7",
                                                      "c10::Float8_e8m0fnu",
                                                      "c10::Float4_e2m1fn_x2"};

// One JSON list under construction, with lists of a TensorList inside of it.
class ListText {
 public:
  void item(std::string_view json) {
    if (!first_) text_ += ", ";
    first_ = false;
    text_ += json;
  }
  void open() {
    item("[");
    first_ = true;
  }
  void close() {
    text_ += ']';
    first_ = false;
  }
  std::string take() { return "[" + text_ + "]"; }

 private:
  std::string text_;
  bool first_ = true;
};

std::string quoted(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(out, text);
  return out + "\"";
}

std::string numbers(ByteReader& reader, unsigned count) {
  std::string out = "[";
  for (unsigned i = 0; i < count; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(reader.fixed<int64_t>());
  }
  return out + "]";
}

class Converter {
 public:
  explicit Converter(std::string_view blob) : reader_(blob) {}

  bool run(InputsJson& out) {
    while (reader_.ok() && !reader_.empty()) one();
    if (in_list_ > 0) close_list();
    out = {.dims = dims_.take(), .types = types_.take(), .strides = strides_.take(), .concrete = concrete_.take()};
    return reader_.ok();
  }

 private:
  void one() {
    const auto kind = static_cast<format::InputKind>(reader_.fixed<uint8_t>());
    const auto dtype = reader_.fixed<uint8_t>();
    const auto rank = reader_.fixed<uint8_t>();
    const bool has_strides = reader_.fixed<uint8_t>() != 0;
    const auto count = reader_.fixed<uint32_t>();
    if (!reader_.ok()) return;
    switch (kind) {
      case format::InputKind::kTensor: {
        const std::string sizes = numbers(reader_, rank);
        tensor(sizes, has_strides ? numbers(reader_, rank) : "[]", dtype_name(dtype));
        break;
      }
      case format::InputKind::kUndefined: tensor("[]", "[]", ""); break;
      case format::InputKind::kTensorList:
        if (in_list_ > 0) close_list();
        dims_.open();
        strides_.open();
        types_.item("\"TensorList\"");
        concrete_.item("\"\"");
        in_list_ = count;
        if (in_list_ == 0) {
          dims_.close();
          strides_.close();
        }
        break;
      case format::InputKind::kScalar: plain("Scalar", text(count)); break;
      case format::InputKind::kScalarList: plain("ScalarList", text(count)); break;
      case format::InputKind::kOther: plain(text(count), ""); break;
      case format::InputKind::kCutOff: plain("...", ""); break;
      default: reader_.bytes(UINT64_MAX);  // a kind of a later version: nothing after it can be told apart
    }
  }
  void tensor(std::string_view sizes, std::string_view strides, std::string_view type) {
    dims_.item(sizes);
    strides_.item(strides);
    if (in_list_ > 0) {
      if (--in_list_ == 0) close_list();
      return;
    }
    types_.item(quoted(type));
    concrete_.item("\"\"");
  }
  void plain(std::string_view type, std::string_view value) {
    if (in_list_ > 0) close_list();
    dims_.item("[]");
    strides_.item("[]");
    types_.item(quoted(type));
    concrete_.item(quoted(value));
  }
  void close_list() {
    in_list_ = 0;
    dims_.close();
    strides_.close();
  }
  std::string_view text(uint32_t bytes) {
    const std::string_view padded = reader_.bytes((uint64_t{bytes} + 7) & ~uint64_t{7});
    return padded.substr(0, bytes);
  }

  ByteReader reader_;
  ListText dims_, types_, strides_, concrete_;
  uint32_t in_list_ = 0;
};

// One tensor of `words`, from its first word on.
std::string tensor_json(uint64_t word, ByteReader& words) {
  if (word == 0) return "null";
  constexpr uint64_t kAddress = (uint64_t{1} << 48) - 1;
  const auto storage = words.fixed<uint64_t>();
  const int device = static_cast<int>(word >> 48 & 0xff) - 1;
  std::string json = "[" + std::to_string(word & kAddress) + ", " + std::to_string(storage & kAddress) + ", ";
  json += std::to_string(word >> 56) + ", " + std::to_string(device) + ", ";
  const std::string dtype = dtype_name(static_cast<unsigned>(storage >> 48 & 0xff));
  json += quoted(std::string_view(dtype));
  const uint64_t layout = storage >> 56;
  return json + (layout == 0 ? "" : ", " + std::to_string(layout)) + "]";
}

}  // namespace

std::string dtype_name(unsigned dtype) {
  return dtype < kDtypes.size() ? std::string(kDtypes[dtype]) : "dtype " + std::to_string(dtype);
}

bool inputs_to_json(std::string_view blob, InputsJson& out) { return Converter(blob).run(out); }

bool tensors_to_json(std::string_view bytes, std::string& out) {
  constexpr uint64_t kList = uint64_t{1} << 63;
  ByteReader words(bytes);
  ListText inputs;
  while (words.ok() && !words.empty()) {
    const auto word = words.fixed<uint64_t>();
    if ((word & kList) == 0) {
      inputs.item(tensor_json(word, words));
      continue;
    }
    inputs.open();
    for (uint64_t i = 0; i < (word & ~kList) && !words.empty(); ++i) {
      inputs.item(tensor_json(words.fixed<uint64_t>(), words));
    }
    inputs.close();
  }
  out = inputs.take();
  return words.ok();
}

}  // namespace firelane::importer

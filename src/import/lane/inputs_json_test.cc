// The recorder's bytes of inputs and tensors as JSON, whole and cut off.
#include "import/lane/inputs_json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/varint.h"
#include "format/layout.h"

namespace firelane::importer {
namespace {

TEST(Inputs, every_kind_becomes_the_json_that_kineto_writes) {
  std::string blob;
  const auto head = [&](format::InputKind kind, uint8_t dtype, uint8_t rank, uint8_t strides, uint32_t count) {
    for (const uint8_t byte : {static_cast<uint8_t>(kind), dtype, rank, strides}) append_fixed(blob, byte);
    append_fixed(blob, count);
  };
  head(format::InputKind::kTensor, 15, 1, 1, 0);
  append_fixed(blob, int64_t{3});
  append_fixed(blob, int64_t{-1});
  head(format::InputKind::kTensorList, 0, 0, 0, 2);
  head(format::InputKind::kTensor, 6, 0, 0, 0);
  head(format::InputKind::kUndefined, 0, 0, 0, 0);
  head(format::InputKind::kScalarList, 0, 0, 0, 6);
  blob.append(std::string_view("[1, 1]\0\0", 8));
  head(format::InputKind::kOther, 0, 0, 0, 4);
  blob.append(std::string_view("Dict\0\0\0\0", 8));
  head(format::InputKind::kCutOff, 0, 0, 0, 0);
  InputsJson json;
  ASSERT_TRUE(inputs_to_json(blob, json));
  EXPECT_EQ(json.dims, "[[3], [[], []], [], [], []]");
  EXPECT_EQ(json.types, R"(["c10::BFloat16", "TensorList", "ScalarList", "Dict", "..."])");
  EXPECT_EQ(json.strides, "[[-1], [[], []], [], [], []]");
  EXPECT_EQ(json.concrete, R"(["", "", "[1, 1]", "", ""])");
  for (size_t cut = 1; cut < blob.size(); ++cut) inputs_to_json(std::string(blob.substr(0, cut)), json);
}

TEST(Tensors, they_are_listed_by_input_and_damaged_ones_are_no_crash) {
  const std::vector<uint64_t> words = {0x1000 | uint64_t{1} << 48 | uint64_t{1} << 56,  // a tensor of GPU 0
                                       0x2000 | uint64_t{6} << 48,
                                       0,                      // a number
                                       uint64_t{1} << 63 | 2,  // a list: absent, and a sparse tensor of the CPU
                                       0,
                                       0x3000,
                                       uint64_t{4} << 48 | uint64_t{1} << 56};
  const std::string bytes(reinterpret_cast<const char*>(words.data()), words.size() * 8);
  std::string json;
  ASSERT_TRUE(tensors_to_json(bytes, json));
  EXPECT_EQ(json, R"([[4096, 8192, 1, 0, "float"], null, [null, [12288, 0, 0, -1, "long int", 1]]])");
  for (size_t cut = 1; cut < bytes.size(); ++cut) tensors_to_json(std::string_view(bytes).substr(0, cut), json);
  EXPECT_FALSE(tensors_to_json(std::string_view(bytes).substr(0, 8), json));
  const uint64_t endless = UINT64_MAX;
  EXPECT_TRUE(tensors_to_json({reinterpret_cast<const char*>(&endless), 8}, json));
}

}  // namespace
}  // namespace firelane::importer

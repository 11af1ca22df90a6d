#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace firelane {
namespace {

TEST(JsonWriter, writes_nested_values_with_commas_where_they_belong) {
  JsonWriter json;
  json.begin_object().field("name", "aten::mm").field("count", 3).key("dims").begin_array();
  json.value(16).value(uint64_t{18446744073709551615u}).value(0.5).null().end_array().field("ok", true).end_object();
  EXPECT_EQ(json.text(), R"({"name":"aten::mm","count":3,"dims":[16,18446744073709551615,0.5,null],"ok":true})");
}

TEST(JsonWriter, escapes_quotes_and_control_characters_and_replaces_invalid_utf8) {
  JsonWriter json;
  json.value("a\"b\\\n\x01 \xC3\xA9 \xFF \xED\xA0\x80");
  EXPECT_EQ(json.text(), "\"a\\\"b\\\\\\n\\u0001 \xC3\xA9 \xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonWriter, writes_null_for_numbers_that_json_does_not_have) {
  JsonWriter json;
  json.begin_array()
      .value(std::numeric_limits<double>::infinity())
      .value(std::numeric_limits<double>::quiet_NaN())
      .end_array();
  EXPECT_EQ(json.text(), "[null,null]");
}

TEST(JsonWriter, indents_when_asked) {
  JsonWriter json(2);
  json.begin_object().key("a").begin_array().value(1).end_array().key("b").begin_object().end_object().end_object();
  EXPECT_EQ(json.text(), "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
}

TEST(JsonWriter, a_number_of_more_than_64_bits_is_not_written_as_an_integer) {
  JsonWriter json;
  json.begin_array().value(59223372036854775807.0).value(-1e19).value(9e18).value(0.5);
  EXPECT_EQ(json.end_array().take(), "[5.9223372036854776e+19,-1e+19,9e+18,0.5]");
}

}  // namespace
}  // namespace firelane

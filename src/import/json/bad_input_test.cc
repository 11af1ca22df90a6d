// What people and machines do to traces: each must be saved as far as it goes, with the
// loss named, or refused in one line.
#include <gtest/gtest.h>

#include "import/load.h"
#include "import/testing.h"

namespace firelane::importer {
namespace {

constexpr const char* kBefore = R"({"ph":"X","cat":"cpu_op","name":"before","pid":1,"tid":1,"ts":1,"dur":2})";
constexpr const char* kAfter = R"({"ph":"X","cat":"cpu_op","name":"after","pid":1,"tid":1,"ts":100,"dur":2})";

std::string refusal(std::string text) {
  const Result<Model> loaded = load_trace_bytes(std::move(text), "bad");
  return loaded.ok() ? "accepted" : loaded.error().message;
}

// A trace with one strange event between two good ones.
Model with_event(const std::string& event) {
  return load_text(R"({"traceEvents":[)" + std::string(kBefore) + "," + event + "," + kAfter + "]}");
}

std::string names(const Model& m) {
  std::string out;
  for (const StringId name : m.host_slices.name) out += std::string(m.text(name)) + " ";
  return out;
}

TEST(BadInput, control_characters_in_a_name_are_replaced_and_counted) {
  const Model m = with_event(
      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\x01"
      "b\nc\",\"pid\":1,\"tid\":1,\"ts\":50,\"dur\":2}");
  EXPECT_EQ(names(m), "before a b c after ");
  EXPECT_EQ(m.losses[Stat::kTextRepaired], 2u);
}

TEST(BadInput, invalid_utf8_in_a_name_is_replaced_and_counted) {
  const Model m = with_event("{\"ph\":\"X\",\"name\":\"a\xFF\xC3\",\"pid\":1,\"tid\":1,\"ts\":50,\"dur\":2}");
  EXPECT_EQ(names(m), "before a?? after ");
  EXPECT_EQ(m.losses[Stat::kTextRepaired], 2u);
}

TEST(BadInput, an_unescaped_quote_loses_only_its_own_event) {
  const Model m = with_event(R"({"ph":"X","cat":"cpu_op","name":"say "hi" now","pid":1,"tid":1,"ts":50,"dur":2})");
  EXPECT_EQ(names(m), "before after ");
  EXPECT_EQ(m.losses[Stat::kEventMalformed], 1u);
}

TEST(BadInput, a_missing_quote_or_bracket_loses_only_its_own_event) {
  for (const char* event : {R"({"ph":"X","name":"open,"pid":1,"tid":1,"ts":50,"dur":2})",
                            R"({"ph":"X","name":"x","args":{"a":[1,2,"pid":1})", R"({"ph":"X","name":)", "garbage",
                            R"({"ph":"X" "name" "x"})"}) {
    const Model m = with_event(event);
    EXPECT_EQ(names(m), "before after ") << event;
    EXPECT_EQ(m.losses[Stat::kEventMalformed], 1u) << event;
  }
}

TEST(BadInput, nan_and_infinity_are_absent_values) {
  EXPECT_EQ(with_event(R"({"ph":"X","name":"x","pid":1,"tid":1,"ts":NaN,"dur":2})").losses[Stat::kEventWithoutTime],
            1u);
  const Model m = with_event(R"({"ph":"X","name":"x","pid":1,"tid":1,"ts":50,"dur":-Infinity,"args":{"v":Infinity}})");
  EXPECT_EQ(names(m), "before x after ");
  EXPECT_EQ(m.losses[Stat::kDurationMissing], 1u);
  const Model counter = with_event(R"({"ph":"C","name":"power","pid":1,"ts":50,"args":{"W":NaN,"V":5}})");
  EXPECT_EQ(counter.counter_samples.size(), 1u);
  EXPECT_EQ(counter.losses[Stat::kNotANumber], 1u);
}

TEST(BadInput, times_and_durations_out_of_range_are_counted) {
  EXPECT_EQ(with_event(R"({"ph":"X","name":"x","pid":1,"tid":1,"ts":1e300,"dur":2})").losses[Stat::kTimeOutOfRange],
            1u);
  EXPECT_EQ(with_event(R"({"ph":"X","name":"x","pid":1,"tid":1,"ts":-9e18,"dur":2})").losses[Stat::kTimeOutOfRange],
            1u);
  EXPECT_EQ(with_event(R"({"ph":"X","name":"x","pid":1,"tid":1,"dur":2})").losses[Stat::kEventWithoutTime], 1u);
  for (const char* duration : {"-5", "1e300", "18446744073709551615", "18446744073709551.615"}) {
    const Model m = with_event(R"({"ph":"X","name":"x","pid":1,"tid":1,"ts":50,"dur":)" + std::string(duration) + "}");
    EXPECT_EQ(m.losses[Stat::kDurationOutOfRange], 1u) << duration;
    EXPECT_EQ(m.host_slices.duration_ns[1], 0) << duration;
  }
}

TEST(BadInput, a_kernel_at_time_zero_has_no_time) {
  const Model m = with_event(R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":0,"dur":0})");
  EXPECT_EQ(m.device_slices.size(), 0u);
  EXPECT_EQ(m.losses[Stat::kEventWithoutTime], 1u);
}

TEST(BadInput, huge_and_negative_ids_do_no_harm) {
  const Model m =
      with_event(R"({"ph":"X","cat":"kernel","name":"k","pid":-7,"tid":99999999999999999999999,"ts":5,"dur":1,
     "args":{"correlation":-1,"External id":1e40,"device":-5,"stream":-9223372036854775808,"grid":[99999999999,-1,"x"]}})");
  ASSERT_EQ(m.device_slices.size(), 1u);
  EXPECT_EQ(m.device_slices.correlation[0], -1);
  EXPECT_EQ(m.device_slices.external_id[0], kNoNumber);
  EXPECT_EQ(m.losses[Stat::kIdOutOfRange], 1u);
}

TEST(BadInput, an_event_without_phase_or_with_an_unknown_one_is_counted) {
  EXPECT_EQ(with_event(R"({"name":"x","ts":1})").losses[Stat::kEventWithoutPhase], 1u);
  EXPECT_EQ(with_event(R"({"ph":"Q","name":"x","ts":1})").losses[Stat::kPhaseUnknown], 1u);
  EXPECT_EQ(with_event("{}").losses[Stat::kEventWithoutPhase], 1u);
}

TEST(BadInput, deep_nesting_is_one_lost_event_at_most) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  const Model m = with_event(R"({"ph":"X","name":"deep","pid":1,"tid":1,"ts":50,"dur":1,"args":{"a":)" + deep + "}}");
  EXPECT_EQ(names(m).find("before "), 0u);
  EXPECT_NE(names(m).find("after "), std::string::npos);
}

TEST(BadInput, deep_nesting_around_everything_is_refused) {
  EXPECT_EQ(refusal(std::string(1000000, '{')).find("bad: "), 0u);
}

TEST(BadInput, a_bare_list_of_brackets_has_no_events) {
  const Model m = load_text(std::string(1000000, '['));
  EXPECT_EQ(m.info.event_count, 0u);
}

TEST(BadInput, things_that_are_no_trace_are_refused_in_one_line) {
  EXPECT_EQ(refusal(""), "bad: empty; nothing was recorded, or the program ended before it was written");
  EXPECT_EQ(refusal("   \n"),
            "bad: not a trace (begins with \"   .\"); firelane opens .lane files, the .json or .json.gz that "
            "torch.profiler exports, and the traces of other tools that docs/formats lists");
  EXPECT_EQ(refusal("\x7F"
                    "ELF\x02"),
            "bad: not a trace (begins with \".ELF.\"); firelane opens .lane files, the .json or .json.gz that "
            "torch.profiler exports, and the traces of other tools that docs/formats lists");
  EXPECT_EQ(refusal(R"({"nodes": []})"), "bad: JSON, but without a traceEvents list: not a Chrome or Kineto trace");
  EXPECT_EQ(refusal(R"({"traceEvents": 5})"),
            "bad: JSON, but without a traceEvents list: not a Chrome or Kineto trace");
  EXPECT_EQ(refusal(R"({"schemaVersion": 1,)"),
            "bad: ends before its list of events; copy the file again, or let the program finish writing");
  EXPECT_EQ(refusal("\x28\xB5\x2F\xFD...."), "bad: zstd, but nothing can be decompressed; copy the file again");
}

TEST(BadInput, an_empty_list_is_a_trace_without_events) {
  const Model m = load_text(R"({"traceEvents": []})");
  EXPECT_EQ(m.info.event_count, 0u);
  EXPECT_EQ(m.losses, LossCounts{});
}

TEST(BadInput, a_second_event_list_is_said) {
  const Model m = load_text(R"({"traceEvents":[)" + std::string(kBefore) + R"(],"traceEvents":[)" + kAfter + "]}");
  EXPECT_EQ(names(m), "before ");
  EXPECT_EQ(m.losses[Stat::kSecondEventList], 1u);
}

TEST(BadInput, ten_thousand_broken_events_do_not_take_quadratic_time) {
  std::string text = R"({"traceEvents":[)";
  for (int i = 0; i < 10000; ++i) text += R"({"ph":"X","name":"open,"ts":1},)";
  text += std::string(kAfter) + "]}";
  const Model m = load_text(text);
  EXPECT_NE(names(m).find("after"), std::string::npos);
  EXPECT_GE(m.losses[Stat::kEventMalformed], 5000u);
}

TEST(BadInput, hostile_markup_in_names_is_only_text) {
  const Model m =
      with_event(R"({"ph":"X","name":"<img src=x onerror=alert(1)>\u0000\ud800","pid":1,"tid":1,"ts":50,"dur":2})");
  EXPECT_EQ(m.text(m.host_slices.name[1]), std::string_view("<img src=x onerror=alert(1)>\0\xEF\xBF\xBD", 32));
}

}  // namespace
}  // namespace firelane::importer

// The layout of torch's table, character by character. The expected text was laid out by
// hand after its rules; tests/python/test_ops_parity.py compares with torch itself.
#include "report/ops_table.h"

#include <gtest/gtest.h>

namespace firelane::report {
namespace {

analyze::OpsRow row(std::string name, int64_t count, int64_t self_ns, int64_t total_ns) {
  analyze::OpsRow out;
  out.name = std::move(name);
  out.is_top_level = true;
  out.count = count;
  out.self_cpu_time_total_ns = self_ns;
  out.cpu_time_total_ns = total_ns;
  return out;
}

analyze::OpsResult two_op_rows() {
  analyze::OpsResult result;
  result.rows = {row("aten::mm", 2, 750'000, 750'000), row("step", 1, 250'000, 1'000'000)};
  result.rows[0].is_top_level = false;
  result.self_cpu_time_total_ns = 1'000'000;
  return result;
}

// The cells of the `line`-th line after the heading, without spaces around them.
std::vector<std::string> cells(const std::string& table, int line) {
  size_t at = 0;
  for (int i = 0; i < line + 3; ++i) at = table.find('\n', at) + 1;
  std::vector<std::string> out;
  const std::string text = table.substr(at, table.find('\n', at) - at);
  for (size_t begin = text.find_first_not_of(' '); begin != std::string::npos;) {
    const size_t end = text.find("  ", begin);
    out.push_back(text.substr(begin, end - begin));
    begin = end == std::string::npos ? end : text.find_first_not_of(' ', end);
  }
  return out;
}

TEST(OpsTable, a_host_only_table_is_laid_out_as_torchs) {
  EXPECT_EQ(ops_table(two_op_rows()),
            "------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
            "        Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  \n"
            "------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
            "    aten::mm        75.00%     750.000us        75.00%     750.000us     375.000us             2  \n"
            "        step        25.00%     250.000us       100.00%       1.000ms       1.000ms             1  \n"
            "------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
            "Self CPU time total: 1.000ms\n");
}

TEST(OpsTable, header_and_top_level_come_below_a_bar) {
  EXPECT_EQ(ops_table(two_op_rows(), {.top_level_only = true, .header = "mine"}),
            "================================================================================================\n"
            "mine\n"
            "================================================================================================\n"
            "This report only display top-level ops statistics\n"
            "------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
            "        Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  \n"
            "------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
            "        step        25.00%     250.000us       100.00%       1.000ms       1.000ms             1  \n"
            "------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
            "Self CPU time total: 1.000ms\n");
}

TEST(OpsTable, device_memory_and_flops_columns_come_when_there_is_something_to_show) {
  analyze::OpsResult result = two_op_rows();
  result.device_name = "cuda";
  result.has_memory = true;
  result.self_device_time_total_ns = 400'000;
  result.rows[0].self_device_time_total_ns = 100'000;
  result.rows[0].device_time_total_ns = 100'000;
  result.rows[0].cpu_memory_usage_bytes = -1536;
  result.rows[0].self_device_memory_usage_bytes = int64_t{3} << 30;
  result.rows[0].flops = 2'500'000;
  const std::string table = ops_table(result, {.with_flops = true});
  EXPECT_EQ(cells(table, -2),
            (std::vector<std::string>{"Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
                                      "Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg", "CPU Mem",
                                      "Self CPU Mem", "CUDA Mem", "Self CUDA Mem", "# of Calls", "Total MFLOPs"}));
  EXPECT_EQ(cells(table, 0), (std::vector<std::string>{"aten::mm", "75.00%", "750.000us", "75.00%", "750.000us",
                                                       "375.000us", "100.000us", "25.00%", "100.000us", "50.000us",
                                                       "-1.50 KB", "0 B", "0 B", "3.00 GB", "2", "2.500"}));
  EXPECT_EQ(cells(table, 1).back(), "--");
  EXPECT_TRUE(table.ends_with("Self CPU time total: 1.000ms\nSelf CUDA time total: 400.000us\n"));
}

TEST(OpsTable, source_and_flops_stand_below_their_own_headings) {
  analyze::OpsResult result = two_op_rows();
  result.rows[0].stack = {"net.py(3): forward", "train.py(9): main"};
  result.rows[0].flops = 7;
  const std::string table = ops_table(result, {.with_flops = true});
  const size_t source = table.find("Source Location") - table.find("        Name");
  const size_t line = (table.find('\n') + 1);
  EXPECT_EQ(table.substr(3 * line + source, 18), "net.py(3): forward");
  EXPECT_EQ(table.substr(4 * line + source, 17), "train.py(9): main");
  EXPECT_EQ(cells(table, 0).back(), "7.000");
}

TEST(OpsTable, long_names_shapes_and_paths_are_cut_where_torch_cuts_them) {
  analyze::OpsResult result = two_op_rows();
  result.rows[0].name = std::string(60, 'n');
  result.rows[0].input_shapes = "[[" + std::string(90, '1') + "]]";
  result.rows[0].stack = {std::string(50, 'x') + std::string(50, 'y')};
  const std::vector<std::string> line = cells(ops_table(result), 0);
  EXPECT_EQ(line[0], std::string(52, 'n') + "...");
  EXPECT_EQ(line[7], "[[" + std::string(78, '1'));
  EXPECT_EQ(line[8], "..." + std::string(22, 'x') + std::string(50, 'y'));
  EXPECT_EQ(cells(ops_table(result, {.max_name_width = std::nullopt}), 0)[0], std::string(60, 'n'));
}

TEST(OpsTable, time_units_can_be_forced) {
  EXPECT_EQ(cells(ops_table(two_op_rows(), {.time_unit = TimeUnit::kMilliseconds}), 0)[2], "0.750ms");
  EXPECT_EQ(cells(ops_table(two_op_rows(), {.time_unit = TimeUnit::kSeconds}), 0)[2], "0.001s");
  EXPECT_EQ(cells(ops_table(two_op_rows(), {.time_unit = TimeUnit::kMicroseconds}), 1)[4], "1000.000us");
}

TEST(OpsTable, sorting_is_from_large_to_small_and_stable) {
  const analyze::OpsResult result = two_op_rows();
  EXPECT_EQ(shown_ops(result, {.order = OpsOrder::kCpuTimeTotal})[0]->name, "step");
  EXPECT_EQ(shown_ops(result, {.order = OpsOrder::kCpuTime})[0]->name, "step");
  EXPECT_EQ(shown_ops(result, {.order = OpsOrder::kCount})[0]->name, "aten::mm");
  EXPECT_EQ(shown_ops(result, {.order = OpsOrder::kFlops})[0]->name, "aten::mm");
  EXPECT_EQ(shown_ops(result, {.row_limit = 1}).size(), 1u);
  EXPECT_EQ(shown_ops(result, {.row_limit = -1}).size(), 2u);
  EXPECT_EQ(shown_ops(result, {.side = OpsSide::kDevice}).size(), 0u);
}

TEST(OpsTable, torchs_sort_names_and_their_cuda_forms_are_known) {
  EXPECT_EQ(parse_ops_order("self_cuda_time_total").value(), OpsOrder::kSelfDeviceTimeTotal);
  EXPECT_EQ(parse_ops_order("xpu_memory_usage").value(), OpsOrder::kDeviceMemoryUsage);
  EXPECT_EQ(parse_ops_order("cpu_time").value(), OpsOrder::kCpuTime);
  EXPECT_EQ(parse_ops_order("nonsense").error().message.substr(0, 21), "must be one of cpu_ti");
}

TEST(OpsTable, a_percentage_of_nothing_is_NaN_and_asynchronous_rows_have_none) {
  analyze::OpsResult result = two_op_rows();
  result.self_cpu_time_total_ns = 0;
  EXPECT_EQ(cells(ops_table(result), 0)[1], "NaN");
  result = two_op_rows();
  result.rows[0].is_async = true;
  EXPECT_EQ(cells(ops_table(result), 0)[3], "0");
}

TEST(OpsTable, no_rows_no_table) { EXPECT_EQ(ops_table(analyze::OpsResult{}), ""); }

}  // namespace
}  // namespace firelane::report

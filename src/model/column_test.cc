#include "model/column.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "model/raw.h"
#include "model/same.h"

namespace firelane {
namespace {

TEST(Column, a_value_that_all_rows_have_is_stored_once_and_read_in_each) {
  Column<int64_t> column;
  column.assign(1000, 7);
  EXPECT_EQ(column.size(), 1000U);
  EXPECT_TRUE(column.is_uniform());
  EXPECT_EQ(column.view().cells().size(), 1U);
  EXPECT_EQ(std::as_const(column)[999], 7);
  column[3] = 7;
  EXPECT_TRUE(column.is_uniform()) << "nothing else was written";
}

TEST(Column, writing_another_value_gives_each_row_its_own) {
  Column<int64_t> column;
  column.assign(4, 7);
  column[2] = 8;
  EXPECT_EQ(column, (std::vector<int64_t>{7, 7, 8, 7}));
  column[0] = column[2];
  EXPECT_EQ(column, (std::vector<int64_t>{8, 7, 8, 7}));
}

TEST(Column, rows_that_are_added_have_their_value_and_the_others_keep_theirs) {
  Column<int32_t> column;
  column.resize(2, -1);
  column.resize(3, -1);
  EXPECT_TRUE(column.is_uniform());
  column.resize(4, 5);
  EXPECT_EQ(column, (std::vector<int32_t>{-1, -1, -1, 5}));
  column.resize(1, 5);
  EXPECT_EQ(column, (std::vector<int32_t>{-1}));
}

TEST(Column, minus_zero_and_not_a_number_are_values_of_their_own) {
  Column<float> column;
  column.assign(2, 0.0F);
  column[1] = -0.0F;
  EXPECT_TRUE(std::signbit(static_cast<float>(column[1])));
  EXPECT_FALSE(std::signbit(static_cast<float>(column[0])));
  column.assign(2, std::numeric_limits<float>::quiet_NaN());
  column[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(column.is_uniform());
}

TEST(Column, algorithms_walk_it_like_an_array) {
  Column<int64_t> column;
  column.assign(3, 4);
  EXPECT_EQ(std::count(column.begin(), column.end(), 4), 3);
  column[1] = 9;
  EXPECT_EQ(std::max_element(column.begin(), column.end()) - column.begin(), 1);
  EXPECT_EQ(column.begin()[2], 4);
}

// ---- what assemble() makes of raw rows

struct Work {
  int64_t start_ns, duration_ns;
  int64_t lane = 0;
  std::string name = "op";
};

// The same work, plain or as slices of their own.
RawTrace trace_of(const std::vector<std::vector<Work>>& parts, bool is_plain) {
  RawTrace raw;
  RawPool& pool = raw.pools.emplace_back();
  for (const std::vector<Work>& works : parts) {
    RawPart& part = raw.parts.emplace_back();
    for (const Work& work : works) {
      const RawWorkLook look{.stream = work.lane,
                             .lane = pool.lane({.number = 0}, {.number = work.lane}),
                             .name = pool.strings.intern(work.name),
                             .category = pool.strings.intern("fusion"),
                             .device = 0};
      part.work_looks.push_back(look);
      part.kernel_details.push_back({.flops = work.duration_ns});
      part.kernel_order.push_back(static_cast<Row>(part.kernel_details.size() - 1));
      const RawPlainWork plain{.start_ns = work.start_ns,
                               .duration_ns = work.duration_ns,
                               .look = static_cast<int32_t>(part.work_looks.size() - 1),
                               .detail = static_cast<Row>(part.kernel_order.size() - 1),
                               .kind = DeviceKind::kKernel};
      if (is_plain) {
        part.plain_work.push_back(plain);
      } else {
        part.device_slices.push_back(part.device_slice(plain));
      }
    }
    if (!is_plain) part.work_looks.clear();
  }
  return raw;
}

void expect_same(const std::vector<std::vector<Work>>& parts) {
  const Model plain = assemble(trace_of(parts, true), 2);
  const Model slices = assemble(trace_of(parts, false), 1);
  EXPECT_EQ(first_difference(plain, slices), std::nullopt);
}

TEST(PlainWork, becomes_the_slices_it_stands_for) {
  expect_same({{{30, 5, 1}, {10, 5, 1, "a"}, {10, 9, 1, "b"}, {0, 3, 2}}, {{5, 5, 3}, {1, 1, 4}}});
}

TEST(PlainWork, of_two_parts_on_one_lane_is_sorted_as_one) {
  expect_same({{{30, 5, 1}, {10, 5, 1}}, {{20, 5, 1}, {0, 1, 1}}});
}

TEST(PlainWork, beside_slices_of_the_same_lane_is_sorted_with_them) {
  const auto with_slice = [](bool is_plain) {
    RawTrace raw = trace_of({{{30, 5, 1}, {10, 5, 1}}}, is_plain);
    raw.parts[0].device_slices.push_back(
        {.start_ns = 20, .duration_ns = 2, .lane = LaneId{0}, .name = StringId{1}, .kind = DeviceKind::kSync});
    return assemble(std::move(raw), 2);
  };
  EXPECT_EQ(first_difference(with_slice(true), with_slice(false)), std::nullopt);
  EXPECT_EQ(with_slice(true).device_slices.start_ns, (std::vector<int64_t>{0, 10, 20}));
}

TEST(Assemble, columns_that_no_row_fills_take_one_cell) {
  const Model m = assemble(trace_of({{{0, 5, 1}, {10, 6, 1}}}, true), 1);
  EXPECT_TRUE(m.device_slices.correlation.is_uniform());
  EXPECT_TRUE(m.device_slices.source.is_uniform());
  EXPECT_TRUE(m.device_slices.category.is_uniform()) << "the same in all rows";
  EXPECT_TRUE(m.kernel_details.grid_x.is_uniform());
  EXPECT_EQ(m.kernel_details.flops, (std::vector<int64_t>{5, 6}));
}

TEST(Assemble, ops_that_share_their_details_have_a_row_each) {
  RawTrace raw;
  RawPool& pool = raw.pools.emplace_back();
  const LaneId lane = pool.lane({.number = 1}, {.number = 1});
  for (int64_t part = 0; part < 2; ++part) {
    RawPart& to = raw.parts.emplace_back();
    to.op_details.push_back({.flops = 10 + part});
    for (Row i = 0; i < 2; ++i) {
      to.op_order.push_back(0);
      to.host_slices.push_back({.start_ns = 10 * part + static_cast<int64_t>(i),
                                .duration_ns = 1,
                                .lane = lane,
                                .name = pool.strings.intern("op"),
                                .kind = HostKind::kOp,
                                .detail = i});
    }
  }
  const Model m = assemble(std::move(raw), 1);
  EXPECT_EQ(m.op_details.slice, (std::vector<Row>{0, 1, 2, 3}));
  EXPECT_EQ(m.op_details.flops, (std::vector<int64_t>{10, 10, 11, 11}));
}

}  // namespace
}  // namespace firelane

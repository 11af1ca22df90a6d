// Causes of slow steps, from logs as text.
#include "always/why.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace firelane::always {
namespace {

constexpr const char* kHeader = "number,count,start_unix_ns,host_ns,device_ns,phase,cpu_ns,gc_ns,input_ns,save_ns\n";

// 40 steps of 100 ms, of which step 20 is `odd`.
std::string log_with(const std::string& odd) {
  std::string csv = kHeader;
  for (int i = 0; i < 40; ++i) {
    csv += i == 20 ? odd + "\n" : std::to_string(i) + ",1,1000,100000000,-1,unrecorded,90000000,1000000,2000000,0\n";
  }
  return csv;
}

Cause cause_of(const std::string& odd) {
  const std::vector<StepRow> rows = parse_steps(log_with(odd));
  EXPECT_EQ(rows.size(), 40u);
  return story_of(rows, 20).cause;
}

TEST(Why, the_part_that_grew_is_the_cause) {
  EXPECT_EQ(cause_of("20,1,1000,100000000,-1,unrecorded,90000000,1000000,2000000,0"), Cause::kNone);
  EXPECT_EQ(cause_of("20,1,1000,400000000,-1,unrecorded,95000000,1000000,300000000,0"), Cause::kInput);
  EXPECT_EQ(cause_of("20,1,1000,400000000,-1,unrecorded,390000000,290000000,2000000,0"), Cause::kGc);
  EXPECT_EQ(cause_of("20,1,1000,400000000,-1,unrecorded,200000000,1000000,2000000,300000000"), Cause::kSave);
  EXPECT_EQ(cause_of("20,1,1000,400000000,-1,unrecorded,390000000,1000000,2000000,0"), Cause::kComputing);
  EXPECT_EQ(cause_of("20,1,1000,400000000,-1,unrecorded,90000000,1000000,2000000,0"), Cause::kNotRunning);
  EXPECT_EQ(cause_of("20,1,1000,150000000,-1,recorded,140000000,1000000,2000000,0"), Cause::kRecording);
  EXPECT_EQ(cause_of("20,1,1000,400000000,-1,recorded,100000000,1000000,300000000,0"), Cause::kInput);
}

TEST(Why, a_gpu_that_took_longer_is_the_cause_where_no_part_of_the_host_is) {
  std::string csv = kHeader;
  for (int i = 0; i < 40; ++i) {
    csv += std::to_string(i) + (i == 20 ? ",1,1,400000000,395000000,unrecorded,50000000,0,0,0\n"
                                        : ",1,1,100000000,95000000,unrecorded,50000000,0,0,0\n");
  }
  EXPECT_EQ(story_of(parse_steps(csv), 20).cause, Cause::kDevice);
}

TEST(Why, torn_lines_and_unknown_columns_are_passed_over) {
  const std::vector<StepRow> rows =
      parse_steps("number,host_ns,mood\n1,5,good\n2,x,bad\n3,7\n4,99999999999999999999,odd\n5,8,");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].number, 5);
  EXPECT_EQ(rows[1].count, 1);
  EXPECT_TRUE(parse_steps("").empty());
}

TEST(Why, too_few_steps_are_not_called_usual) {
  const std::vector<StepRow> rows = parse_steps("number,host_ns\n1,5\n2,500\n");
  EXPECT_EQ(story_of(rows, 1).usual_ns, -1);
  EXPECT_EQ(story_of(rows, 1).cause, Cause::kNone);
}

TEST(Why, a_run_is_read_from_all_its_files_and_says_what_was_kept) {
  const std::filesystem::path run =
      std::filesystem::temp_directory_path() / ("firelane_why_" + std::to_string(::getpid()));
  std::filesystem::create_directories(run / "kept/step-20-slow");
  std::filesystem::create_directories(run / "windows");
  const std::string csv = log_with("20,1,1000,400000000,-1,unrecorded,95000000,1000000,300000000,0");
  const size_t half = csv.find("\n25,") + 1;
  std::ofstream(run / "steps-000001.csv") << csv.substr(0, half);
  std::ofstream(run / "steps-000002.csv") << kHeader << csv.substr(half);
  std::ofstream(run / "kept/step-20-slow/incident.txt") << "slow step\n";
  std::ofstream(run / "windows/step-24.lane") << "";
  const Result<std::string> text = why(run, 20);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value(),
            "step 20: 400.0 ms, usually 100.0 ms (median of 39): 4.00x, waiting for input (DataLoader)\n"
            "  waiting for input          300.0 ms   usually 2.0 ms\n"
            "  garbage collection           1.0 ms   usually 1.0 ms\n"
            "  saving                         0 ns   usually 0 ns\n"
            "  training thread on CPU      95.0 ms   usually 90.0 ms\n"
            "\nkept: " +
                (run / "kept/step-20-slow").string() +
                "\nslow step\n"
                "\nnearest steps in detail: firelane diagnose " +
                (run / "windows/step-24.lane").string() + "\n");
  EXPECT_NE(why(run, -1).value().find("step 20: 400.0 ms"), std::string::npos);
  EXPECT_NE(why(run, 99).value().find("not in the log, which has steps 0 to 39"), std::string::npos);
  std::filesystem::remove_all(run);
  EXPECT_FALSE(why(run, 20).ok());
}

TEST(Why, commands_can_be_pasted_where_the_folder_has_a_space_and_a_quote) {
  const std::filesystem::path run =
      std::filesystem::temp_directory_path() / ("firelane it's why " + std::to_string(::getpid()));
  std::filesystem::create_directories(run / "kept/step-20-slow");
  std::filesystem::create_directories(run / "windows");
  std::ofstream(run / "steps-000001.csv") << log_with("20,1,1000,400000000,-1,unrecorded,95000000,0,300000000,0");
  for (const char* file :
       {"kept/step-20-slow/after.lane", "kept/step-20-slow/flight_rank0.json", "windows/step-24.lane"})
    std::ofstream(run / file) << "";
  const std::string text = why(run, 20).value();
  const std::string folder = "'" + run.parent_path().string() + "/firelane it'\\''s why " + std::to_string(::getpid());
  EXPECT_NE(text.find("  firelane diagnose " + folder + "/kept/step-20-slow/after.lane'\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  firelane hangs " + folder + "/kept/step-20-slow/flight_rank0.json'\n"), std::string::npos);
  EXPECT_NE(text.find(": firelane diagnose " + folder + "/windows/step-24.lane'\n"), std::string::npos);
  std::filesystem::remove_all(run);
}

TEST(Why, a_hang_shows_where_it_was_and_what_it_waited_for) {
  const std::filesystem::path run =
      std::filesystem::temp_directory_path() / ("firelane_hang_" + std::to_string(::getpid()));
  const std::filesystem::path kept = run / "kept/step-40-hang";
  std::filesystem::create_directories(kept);
  std::ofstream(run / "steps-000001.csv") << log_with("20,1,1000,100000000,-1,unrecorded,95000000,0,0,0");
  std::ofstream(kept / "incident.txt") << "hang: no step for 60.0 s\n";
  std::ofstream(kept / "collectives.txt") << "pending collectives: 1\n  nccl:all_reduce #7\n";
  std::ofstream(kept / "flight_rank0.json") << "{}";
  std::ofstream(kept / "stacks.txt") << "";
  EXPECT_EQ(why(run, 40).value(),
            "step 40: not in the log, which has steps 0 to 39\n"
            "\nkept: " +
                kept.string() +
                "\nhang: no step for 60.0 s\n"
                "pending collectives: 1\n  nccl:all_reduce #7\n"
                "  firelane hangs " +
                (kept / "flight_rank0.json").string() + "\n  stacks of all threads: " + (kept / "stacks.txt").string() +
                "\n");
  std::filesystem::remove_all(run);
}

}  // namespace
}  // namespace firelane::always

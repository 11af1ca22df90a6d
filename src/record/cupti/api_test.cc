// Why the GPU cannot be recorded, and what to do, in words.
#include "record/cupti/api.h"

#include <gtest/gtest.h>

#include "record/cupti/testing.h"

namespace firelane::cupti {
namespace {

using test::FakeCupti;

class Explain : public ::testing::Test {
 protected:
  bool says(CUptiResult result, std::string_view words) const {
    return explain(api, result).find(words) != std::string::npos;
  }
  FakeCupti fake;
  CuptiApi api = fake.api();  // of CUDA 13.0, as its driver
};

TEST_F(Explain, a_driver_that_is_older_than_cupti_is_named_with_both_versions) {
  api.driver_call = [](int* version) { return *version = 12'040, CUDA_SUCCESS; };
  for (const CUptiResult result : {CUPTI_ERROR_NOT_INITIALIZED, CUPTI_ERROR_NOT_COMPATIBLE, CUPTI_ERROR_UNKNOWN}) {
    EXPECT_TRUE(
        says(result, "the driver is for CUDA 12.4, CUPTI for CUDA 13; update the driver, or use a torch for CUDA 12"))
        << explain(api, result);
  }
}

TEST_F(Explain, within_a_major_version_the_driver_is_not_to_blame) {
  EXPECT_TRUE(says(CUPTI_ERROR_NOT_INITIALIZED, "nvidia-smi shows why"));
  api.get_version = [](uint32_t* version) { return *version = 26, CUPTI_SUCCESS; };  // CUDA 12.8
  api.driver_call = [](int* version) { return *version = 12'020, CUDA_SUCCESS; };
  EXPECT_TRUE(says(CUPTI_ERROR_NOT_INITIALIZED, "nvidia-smi shows why"));
  api.driver_call = nullptr;
  EXPECT_TRUE(says(CUPTI_ERROR_NOT_COMPATIBLE, "update the driver"));
}

TEST_F(Explain, permission_and_other_profilers_have_their_own_remedies_whatever_the_driver) {
  api.driver_call = [](int* version) { return *version = 11'080, CUDA_SUCCESS; };
  EXPECT_TRUE(says(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "NVreg_RestrictProfilingToAdminUsers=0"));
  EXPECT_TRUE(says(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "another profiler"));
}

}  // namespace
}  // namespace firelane::cupti

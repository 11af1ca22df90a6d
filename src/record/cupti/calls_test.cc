// Which calls are recorded, by name.
#include "record/cupti/calls.h"

#include <gtest/gtest.h>

namespace firelane::cupti {
namespace {

TEST(Calls, versions_are_cut_off_and_other_suffixes_stay) {
  EXPECT_EQ(plain_call_name("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(plain_call_name("__cudaLaunchKernel_v13000"), "cudaLaunchKernel");
  EXPECT_EQ(plain_call_name("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync_ptsz");
  EXPECT_EQ(plain_call_name("cuMemcpyHtoDAsync_v2"), "cuMemcpyHtoDAsync_v2");
  EXPECT_EQ(plain_call_name("cuLaunchKernel"), "cuLaunchKernel");
}

TEST(Calls, launches_copies_waits_and_memory_are_wanted_the_rest_is_not) {
  for (const char* name :
       {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel", "cudaGraphLaunch", "cudaMemcpyAsync",
        "cudaMemset", "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventRecord", "cudaStreamWaitEvent",
        "cudaMalloc", "cudaFreeHost", "cuLaunchKernelEx", "cuMemMap", "cuMemCreate"}) {
    EXPECT_TRUE(is_wanted_call(name)) << name;
  }
  for (const char* name : {"cudaGetDevice", "cudaPeekAtLastError", "cudaStreamIsCapturing", "cudaEventQuery",
                           "cudaFuncGetAttributes", "cuCtxGetCurrent", "cuKernelGetFunction", "cuDeviceGetAttribute"}) {
    EXPECT_FALSE(is_wanted_call(name)) << name;
  }
}

}  // namespace
}  // namespace firelane::cupti

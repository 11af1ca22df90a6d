#include "analyze/host/host_calls.h"

#include <gtest/gtest.h>

namespace firelane::analyze {
namespace {

TEST(HostCalls, every_runtime_waits_in_its_own_words) {
  for (const char* name : {"cudaStreamSynchronize", "hipStreamSynchronize", "synStreamSynchronize", "synchronizeStream",
                           "AscendCL@aclrtSynchronizeStream", "AscendCL@aclrtSynchronizeStreamWithTimeout",
                           "urQueueFinish", "piQueueFinish", "zeCommandQueueSynchronize"})
    EXPECT_EQ(call_kind(name), CallKind::kStreamSync) << name;
  for (const char* name : {"cudaDeviceSynchronize", "cuCtxSynchronize", "AscendCL@aclrtSynchronizeDevice"})
    EXPECT_EQ(call_kind(name), CallKind::kDeviceSync) << name;
  for (const char* name :
       {"cudaEventSynchronize", "urEventWait", "zeEventHostSynchronize", "hsa_signal_wait_scacquire"})
    EXPECT_EQ(call_kind(name), CallKind::kEventSync) << name;
}

TEST(HostCalls, every_runtime_launches_and_copies_in_its_own_words) {
  for (const char* name :
       {"cudaLaunchKernel", "hipModuleLaunchKernel", "urEnqueueKernelLaunch", "piEnqueueKernelLaunch",
        "zeCommandListAppendLaunchKernel", "synLaunch", "runFunction - job_prep_and_submit"})
    EXPECT_EQ(call_kind(name), CallKind::kLaunch) << name;
  for (const char* name : {"cudaMemcpyAsync", "hipMemcpyWithStream", "enqueueCommand memcpyHtoDAsync",
                           "AscendCL@aclrtMemcpy", "urEnqueueUSMMemcpy", "zeCommandListAppendMemoryCopy"})
    EXPECT_EQ(call_kind(name), CallKind::kCopy) << name;
  EXPECT_EQ(call_kind("AscendCL@opCompile"), CallKind::kLoading);
  EXPECT_EQ(call_kind("AscendCL@aclopCompileAndExecuteV2"), CallKind::kLoading);
}

// Only CUDA and HIP are known to wait for all streams when memory is given back.
TEST(HostCalls, giving_memory_back_waits_where_that_is_known) {
  EXPECT_TRUE(is_blocking(call_kind("cudaFree")));
  EXPECT_TRUE(is_blocking(call_kind("hipFree")));
  for (const char* name : {"cudaFreeAsync", "zeMemFree", "AscendCL@aclrtFree", "urUSMFree"})
    EXPECT_FALSE(is_blocking(call_kind(name))) << name;
}

}  // namespace
}  // namespace firelane::analyze

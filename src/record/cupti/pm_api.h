// CUPTI's PM sampling: hardware counters of a whole GPU, read at a fixed interval while kernels run undisturbed. Its
// functions as a table, found at run time (CUDA 12.6 or newer); tests put their own in (record/cupti/pm_testing.h).
#pragma once

#include <cupti.h>

#include <optional>
#include <string>

#include "record/cupti/api.h"

#if __has_include(<cupti_pmsampling.h>)
#define FIRELANE_PM_SAMPLING 1
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#else
#define FIRELANE_PM_SAMPLING 0
#endif

namespace firelane::cupti {

#if FIRELANE_PM_SAMPLING
// Field, function of CUPTI's, and its params, whose name begins with CUpti_ and ends with _Params.
#define FL_PM_FUNCTIONS(X)                                                                         \
  X(initialize, cuptiProfilerInitialize, Profiler_Initialize)                                      \
  X(chip_name, cuptiDeviceGetChipName, Device_GetChipName)                                         \
  X(host_initialize, cuptiProfilerHostInitialize, Profiler_Host_Initialize)                        \
  X(host_deinitialize, cuptiProfilerHostDeinitialize, Profiler_Host_Deinitialize)                  \
  X(add_metrics, cuptiProfilerHostConfigAddMetrics, Profiler_Host_ConfigAddMetrics)                \
  X(config_size, cuptiProfilerHostGetConfigImageSize, Profiler_Host_GetConfigImageSize)            \
  X(config, cuptiProfilerHostGetConfigImage, Profiler_Host_GetConfigImage)                         \
  X(passes, cuptiProfilerHostGetNumOfPasses, Profiler_Host_GetNumOfPasses)                         \
  X(evaluate, cuptiProfilerHostEvaluateToGpuValues, Profiler_Host_EvaluateToGpuValues)             \
  X(availability, cuptiPmSamplingGetCounterAvailability, PmSampling_GetCounterAvailability)        \
  X(enable, cuptiPmSamplingEnable, PmSampling_Enable)                                              \
  X(disable, cuptiPmSamplingDisable, PmSampling_Disable)                                           \
  X(set_config, cuptiPmSamplingSetConfig, PmSampling_SetConfig)                                    \
  X(start, cuptiPmSamplingStart, PmSampling_Start)                                                 \
  X(stop, cuptiPmSamplingStop, PmSampling_Stop)                                                    \
  X(decode, cuptiPmSamplingDecodeData, PmSampling_DecodeData)                                      \
  X(data_size, cuptiPmSamplingGetCounterDataSize, PmSampling_GetCounterDataSize)                   \
  X(clear_data, cuptiPmSamplingCounterDataImageInitialize, PmSampling_CounterDataImage_Initialize) \
  X(data_info, cuptiPmSamplingGetCounterDataInfo, PmSampling_GetCounterDataInfo)                   \
  X(sample_info, cuptiPmSamplingCounterDataGetSampleInfo, PmSampling_CounterData_GetSampleInfo)

#else
#define FL_PM_FUNCTIONS(X)
#endif

struct PmApi {
#define FL_FIELD(field, function, params) CUptiResult (*field)(CUpti_##params##_Params*) = nullptr;
  FL_PM_FUNCTIONS(FL_FIELD)
#undef FL_FIELD
};

// From the library that load_cupti() found. None is a normal answer: `reason` then says what to do.
std::optional<PmApi> load_pm_sampling(std::string& reason) noexcept;

// Why there are no metrics, and what to do about it: "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: ...".
std::string explain_metrics(const CuptiApi& api, CUptiResult result);

}  // namespace firelane::cupti

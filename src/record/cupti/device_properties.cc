#include "record/cupti/device_properties.h"

#include <cuda.h>
#include <dlfcn.h>

#include "base/json_writer.h"

namespace firelane::cupti {
namespace {

struct Driver {
  CUresult (*count)(int*) = nullptr;
  CUresult (*name)(char*, int, CUdevice) = nullptr;
  CUresult (*total_memory)(size_t*, CUdevice) = nullptr;
  CUresult (*attribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
};

bool load(Driver& driver) {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  driver.count = reinterpret_cast<decltype(driver.count)>(::dlsym(library, "cuDeviceGetCount"));
  driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(library, "cuDeviceGetName"));
  driver.total_memory = reinterpret_cast<decltype(driver.total_memory)>(::dlsym(library, "cuDeviceTotalMem_v2"));
  driver.attribute = reinterpret_cast<decltype(driver.attribute)>(::dlsym(library, "cuDeviceGetAttribute"));
  return driver.count != nullptr && driver.name != nullptr && driver.total_memory != nullptr &&
         driver.attribute != nullptr;
}

struct Field {
  const char* key;
  CUdevice_attribute attribute;
};
constexpr Field kFields[] = {
    {"computeMajor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {"computeMinor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {"maxThreadsPerBlock", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {"maxThreadsPerMultiprocessor", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {"maxBlocksPerMultiprocessor", CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {"regsPerBlock", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {"warpSize", CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {"sharedMemPerBlock", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {"numSms", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {"regsPerMultiprocessor", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {"sharedMemPerBlockOptin", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {"sharedMemPerMultiprocessor", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
};

}  // namespace

std::vector<std::string> used_device_bus_ids() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return {};
  const auto count_of = reinterpret_cast<CUresult (*)(int*)>(::dlsym(library, "cuDeviceGetCount"));
  const auto state_of =
      reinterpret_cast<CUresult (*)(CUdevice, unsigned*, int*)>(::dlsym(library, "cuDevicePrimaryCtxGetState"));
  const auto bus_id_of = reinterpret_cast<CUresult (*)(char*, int, CUdevice)>(::dlsym(library, "cuDeviceGetPCIBusId"));
  int count = 0;
  if (count_of == nullptr || state_of == nullptr || bus_id_of == nullptr || count_of(&count) != CUDA_SUCCESS) return {};
  std::vector<std::string> bus_ids(static_cast<size_t>(count));
  for (int device = 0; device < count; ++device) {
    unsigned flags = 0;
    int is_active = 0;
    char text[32] = "";
    const bool is_used = state_of(device, &flags, &is_active) == CUDA_SUCCESS && is_active != 0;
    if (is_used && bus_id_of(text, sizeof text, device) == CUDA_SUCCESS) bus_ids[static_cast<size_t>(device)] = text;
  }
  return bus_ids;
}

std::string device_properties_json() {
  Driver driver;
  int count = 0;
  if (!load(driver) || driver.count(&count) != CUDA_SUCCESS || count == 0) return {};
  std::string json = "[";
  for (int device = 0; device < count; ++device) {
    char name[256] = "";
    size_t memory = 0;
    driver.name(name, sizeof name - 1, device);
    driver.total_memory(&memory, device);
    if (device > 0) json += ", ";
    json += "{\"id\": " + std::to_string(device) + ", \"name\": \"";
    append_json_escaped(json, name);
    json += "\", \"totalGlobalMem\": " + std::to_string(memory);
    for (const Field& field : kFields) {
      int value = 0;
      if (driver.attribute(&value, field.attribute, device) != CUDA_SUCCESS) continue;
      json += std::string(", \"") + field.key + "\": " + std::to_string(value);
    }
    json += "}";
  }
  return json + "]";
}

}  // namespace firelane::cupti

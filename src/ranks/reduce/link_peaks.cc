#include "ranks/reduce/link_peaks.h"

#include <array>

#include "analyze/device/device_peaks.h"

namespace firelane::ranks {

namespace {

struct LinkPeak {
  std::string_view device;  // as in the table of device peaks
  double gb_s = 0;
};

// Half of what the makers' datasheets give for both ways together. Cards that come with and without links (A100 40GB,
// NVLink bridges of PCIe cards) are not here.
constexpr std::array kLinkPeaks = {
    LinkPeak{"P100", 80},            // NVLink 1: 160 GB/s
    LinkPeak{"V100 SXM2", 150},      // NVLink 2: 300 GB/s
    LinkPeak{"A100 SXM 80GB", 300},  // NVLink 3: 600 GB/s
    LinkPeak{"H100 SXM", 450},       // NVLink 4: 900 GB/s
    LinkPeak{"H200", 450},          LinkPeak{"H20", 450},   LinkPeak{"GH200", 450},
    LinkPeak{"GH200 144GB", 450},   LinkPeak{"B200", 900},  // NVLink 5: 1,800 GB/s
    LinkPeak{"B300", 900},          LinkPeak{"GB200", 900}, LinkPeak{"GB300", 900},
    LinkPeak{"MI300X", 448},  // Infinity Fabric, 7 links: 896 GB/s
    LinkPeak{"MI325X", 448},
};

}  // namespace

double link_peak_gb_s(std::string_view device_name) {
  const analyze::DevicePeaks* peaks = analyze::find_device_peaks(device_name);
  if (peaks == nullptr || device_name.find("PCIe") != std::string_view::npos ||
      device_name.find("PCIE") != std::string_view::npos) {
    return 0;
  }
  for (const LinkPeak& each : kLinkPeaks) {
    if (each.device == peaks->name) return each.gb_s;
  }
  return 0;
}

}  // namespace firelane::ranks

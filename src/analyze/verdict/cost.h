// What a step costs: energy where power was recorded, money and CO2 where the user says what an hour and a kWh cost.
//
// Steps last as long as everywhere else (analyze/steps/step_spans.h): what the device did for a step is in it, and
// energy per step times steps is the energy of all. Prices are by the mean step without recording, which times the
// steps of a run is the run.
//
// Energy comes from counters "... energy (J)", which count up; before the first and after the last reading it is the
// mean power between them. For other devices from counters whose name holds "power", in W ("mW" in the name or series:
// in mW), each track one device: the area under the samples, straight lines between them, the first and last value held
// to the ends of the window. A track without two samples in the trace gives none.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "traces/studied_trace.h"

namespace firelane::analyze {

struct CostOptions {
  double price_per_hour = -1;  // of all devices of the trace together; -1 not given
  double grams_per_kwh = -1;   // CO2; -1 not given
  int64_t samples_per_step = -1;
  int64_t steps_per_run = -1;
  double overhead_factor = 1;  // power usage effectiveness of the data center
};

struct StepCost {
  int64_t step = kNoNumber;
  int64_t duration_ns = 0;
  double energy_joules = -1;  // -1 not known
};

struct Cost {
  std::vector<StepCost> steps;
  int64_t window_ns = 0;                  // steps' time, or the trace's when it has none
  int64_t usual_ns = kNoNumber;           // a step without recording, as the verdict has it (study.h)
  int64_t usual_recorded_ns = kNoNumber;  // while recording
  int64_t step_ns = kNoNumber;            // the mean without recording: prices use it
  bool estimated = false;                 // no step was timed without recording
  int64_t power_tracks = 0;               // devices whose energy is known: two readings or more
  int64_t power_readings = 0;             // in all
  double mean_power_watts = -1;           // in the window
  double energy_joules = -1;              // of the window
  double energy_per_step_joules = -1;
  double price_per_step = -1;
  double price_per_1000_samples = -1;
  double price_per_run = -1;
  double joules_per_sample = -1;
  double grams_per_step = -1;
  double grams_per_run = -1;
};

Cost cost_of(const StudiedTrace& trace, const CostOptions& options = {});

}  // namespace firelane::analyze

// Writes the model in speedscope's own file format (www.speedscope.app): one evented profile
// for each lane; slices that overlap without nesting go to further profiles of the lane.
#pragma once

#include "export/byte_sink.h"
#include "model/model.h"

namespace firelane::exporter {

void export_speedscope(const Model& model, ByteSink& sink);

}  // namespace firelane::exporter

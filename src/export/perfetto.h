// Writes the model as a native Perfetto trace (.pftrace): protobuf track events, what
// ui.perfetto.dev and trace_processor open without converting.
//
// Processes and threads are Perfetto's own; a GPU is a group of stream tracks. Slices that
// overlap without nesting go to further tracks of the same name, which the viewer draws as
// one. Names, categories and texts are interned. Arrows: op -> launch -> device work,
// forward -> backward, and the trace's own. Memory totals are counters.
#pragma once

#include "export/byte_sink.h"
#include "export/place.h"
#include "model/model.h"

namespace firelane::exporter {

// Several traces in one file are written one after another, each with its place.
void export_perfetto(const Model& model, ByteSink& sink, const ExportPlace& place = {});

}  // namespace firelane::exporter

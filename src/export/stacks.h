// Writes folded stacks, `root;...;leaf <int us>`: what flamegraph.pl and speedscope read.
//
// A stack is the nesting of a thread: Python functions, annotations, ops, runtime calls.
// kSelfHost: time spent in the leaf and in none of its children. kSelfDevice: time of device
// work, with its name as the leaf below the stack of its op ("(no op)" when it has none).
// Equal stacks are one line; spaces, semicolons, tabs and line breaks in names become _, as
// in torch's export_stacks. Stacks of less than a microsecond in all are left out.
#pragma once

#include "export/byte_sink.h"
#include "model/model.h"

namespace firelane::exporter {

enum class StackMetric : uint8_t { kSelfHost, kSelfDevice };

void export_stacks(const Model& model, StackMetric metric, ByteSink& sink);

}  // namespace firelane::exporter

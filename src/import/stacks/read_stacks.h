// Profiles that are stacks: speedscope's JSON (py-spy, rbspy, our own export) and collapsed stacks (perf, py-spy,
// FlameGraph: "main;train;step 42" lines).
//
// Frames become slices that nest, a thread a lane. Samples are laid one after another, each as long as its weight, and
// what two neighbours share is one slice: of collapsed stacks, which have no times, only sums mean something.
#pragma once

#include <string_view>

#include "import/reader.h"

namespace firelane::importer {

bool is_speedscope(std::string_view begin);
Reader speedscope_reader();

bool is_collapsed(std::string_view begin);
Reader collapsed_reader();

}  // namespace firelane::importer

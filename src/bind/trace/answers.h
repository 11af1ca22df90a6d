// What the command line's verbs answer, as methods of firelane.Trace.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "bind/trace/table.h"
#include "bind/trace/trace.h"
#include "report/table.h"

namespace firelane::bind_trace {

void bind_answers(nanobind::class_<Trace>& trace);   // info, ops, kernels, steps, lanes
void bind_analyses(nanobind::class_<Trace>& trace);  // roofline, fusion, modules, memory, input, inference, cost

// `all` for programs, `text` for print(). The table is called `name` in its repr.
Table answer(report::Table all, std::string name, std::string text);
// The first table of the report, in notebooks with its facts and notes.
Table answer(report::Report all, std::string name, std::string text);
// The same, printed whole.
Table answer(report::Report report, std::string name);

}  // namespace firelane::bind_trace

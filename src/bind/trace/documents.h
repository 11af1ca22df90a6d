// Trace.report() and Trace.view(), and those of a comparison: one document, in a file, as text, or in a notebook.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bind/trace/trace.h"

namespace firelane::bind_trace {

using MakePage = std::function<std::string(size_t max_bytes)>;  // both are called without the GIL
using MakeMarkdown = std::function<std::string()>;

// The viewer's page for a path that ends in .html, Markdown for .md, and the Markdown itself without a path.
std::optional<std::string> write_document(const std::optional<std::filesystem::path>& path, bool force,
                                          const MakePage& page, const MakeMarkdown& markdown);

// What a notebook draws: the report in a frame that may run its own scripts and nothing else. No server, so it works
// wherever the notebook is. Elsewhere it says which command opens the same.
struct View {
  MakePage page;
  std::vector<std::string> command;
  int height;
};
View make_view(MakePage page, std::vector<std::string> command, int height);

void bind_documents(nanobind::module_& module, nanobind::class_<Trace>& trace);

}  // namespace firelane::bind_trace

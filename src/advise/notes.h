// Notes of the recorder (metadata of a trace) that advice depends on: {} or "" if the trace has none of that name, or
// it is something else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise/finding.h"
#include "model/model.h"

namespace firelane::advise {

inline std::optional<double> noted_number(const Model& model, std::string_view key) {
  const MetadataEntry* entry = model.find_metadata(key);
  return entry == nullptr ? std::nullopt : entry->number;
}

inline std::string noted_text(const Model& model, std::string_view key) {
  const MetadataEntry* entry = model.find_metadata(key);
  return entry == nullptr ? "" : entry->text;
}

inline std::vector<double> noted_numbers(const Model& model, std::string_view key) {
  const MetadataEntry* entry = model.find_metadata(key);
  return entry == nullptr ? std::vector<double>{} : entry->numbers;
}

inline constexpr std::string_view kCompile = "model = torch.compile(model)";

// The program uses torch.compile, and it broke its graph, or left functions as they were.
inline bool is_compile_broken(const Model& model) {
  return noted_number(model, "compile_graph_breaks").value_or(0) > 0 ||
         noted_number(model, "compile_failed").value_or(0) > 0;
}
// The same without any break.
inline bool is_compiled(const Model& model) {
  return noted_number(model, "compile_graphs").value_or(0) > 0 && !is_compile_broken(model);
}

// How to have operators fused in a program that may use torch.compile already: `text` and torch.compile(model) if not.
inline void advise_fusing(const Model& model, const char* text, Finding& finding) {
  finding.try_text = text;
  finding.try_code = kCompile;
  if (is_compile_broken(model)) {
    finding.try_text = "torch.compile broke its graph (graph-breaks) and leaves these as they are: fix that first";
    finding.try_code = "torch.compile(model, fullgraph=True)  # fails at the first break, and says why";
  } else if (is_compiled(model)) {
    finding.try_text = "compile what is outside of the compiled part as well, or use one operator for what several do";
    finding.try_code = "step = torch.compile(step)  # the model with its loss, and what is done with it";
  }
}

}  // namespace firelane::advise

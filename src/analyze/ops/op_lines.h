// The line of the program that called an op: as the recorder noted it (the option `lines`), else from recorded Python
// functions. An op of a backward pass has the line of its forward op; what an op calls has the op's line, unless Python
// code in between called it (a torch.autograd.Function).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

struct ProgramLine {
  std::string line;         // "model.py(41): Net.forward": the nearest one outside torch
  std::string called_from;  // where that is one of an installed package: the program's line that led to it, if known
  std::string caller;       // the program's line that called the function of the program's line; "" if not known

  // The nearest one of the program; that of a package if none is known.
  const std::string& program_line() const { return called_from.empty() ? line : called_from; }
};

class OpLines {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit OpLines(const Model& model);

  // The line of a host slice, as an index into lines(). kNone: none is known.
  uint32_t of(Row slice) const { return of_slice_[slice].line; }
  // Whether that is the line of a forward op, of which the slice is the backward pass.
  bool is_of_forward(Row slice) const { return of_slice_[slice].by_forward; }
  // The slice that a piece of device work belongs to; kNoRow: the trace does not say.
  Row slice_of(Row work) const;
  const std::vector<ProgramLine>& lines() const { return lines_; }
  bool empty() const { return lines_.empty(); }  // the trace does not say which line called its ops

 private:
  struct Found {
    uint32_t line = kNone;
    bool by_forward = false;
  };
  uint32_t own_line(Row slice);
  uint32_t of_stack(StringId stack);
  uint32_t of_functions(Row slice);
  uint32_t intern(ProgramLine line);

  const Model& model_;
  std::vector<Found> of_slice_;
  std::vector<ProgramLine> lines_;
  std::unordered_map<std::string, uint32_t> known_;
  std::unordered_map<uint32_t, uint32_t> of_text_;
  std::unordered_map<Row, uint32_t> of_library_;  // of what a library's Python function calls
};

// The lines of all slices of a trace, for StudiedTrace::get.
OpLines op_lines(const Model& model);

}  // namespace firelane::analyze

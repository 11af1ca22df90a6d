// Copies that ops make: casts, changes of layout, plain copies, transfers between host and device.
//
// One call is an outermost aten::to, _to_copy, contiguous, clone, reshape or copy_ that did device work; its copy_
// tells what became what. In a trace without a device every copy_ counts, with its own time. Rows are made by kind,
// types and shape. A cast back to the type that the same shape was cast from shortly before, on the same thread, is
// ping-pong: neither was needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace firelane::analyze {

enum class CopyKind : uint8_t { kCast, kLayout, kPlain, kToDevice, kToHost };
std::string_view name_of(CopyKind kind);  // "cast", "layout", "plain", "to device", "to host"

struct CopyRow {
  CopyKind kind = CopyKind::kPlain;
  std::string from;      // type: "fp32"
  std::string to;        // type
  std::string shape;     // "[16, 512]"
  std::string asked_by;  // the op around it: aten::linear casts under autocast; "" the program itself
  int64_t calls = 0;
  int64_t ping_pong_calls = 0;  // of these, undo a cast of the same shape
  int64_t bytes = 0;            // read and written; 0 when the trace gives no shapes
  int64_t device_ns = 0;        // without a device: of the copy_ itself
  std::vector<Row> ops;         // host slices: each copy_, in order
};

struct CopyTable {
  std::vector<CopyRow> rows;       // longest device time first
  int64_t device_ns = 0;           // all of them
  std::vector<Row> ping_pong_ops;  // host slices: casts that the program asked for itself, those that undo them, and
                                   // theirs of the backward pass
  int64_t without_shapes = 0;      // calls
};

CopyTable copy_table(const Model& model);

// The outermost aten::to, contiguous, ... that this copy_ is part of; the copy_ itself when the program called it.
Row asked_copy(const Model& model, Row copy);

}  // namespace firelane::analyze

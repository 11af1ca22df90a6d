// Which work of one run is which of another: by module, op, shapes, kernel and order.
//
// What agrees in everything is matched first, then with less and less agreement, so that a kernel that became another
// one, shapes that changed, a module that was renamed and a layer that was added each leave the rest alone. Groups that
// agree in a pass are matched in order of appearance. What no pass matches is new or gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "compare/run/run.h"

namespace firelane::compare {

inline constexpr size_t kNone = SIZE_MAX;

struct WorkMatch {
  size_t before = kNone;  // index; kNone: new
  size_t after = kNone;   // kNone: gone
};

// Every group of both sides is in exactly one match. Those of `after` in their order, then what is gone.
std::vector<WorkMatch> match_work(std::span<const WorkGroup> before, std::span<const WorkGroup> after);

// How the work of a match differs in kind; its calls and speed are told apart besides.
enum class Change : uint8_t { kNone, kShapes, kPrecision, kAlgorithm, kNew, kGone };
std::string_view name_of(Change change);  // "same", "other shapes", "other precision", "other kernel", "new", "gone"
Change change_of(const WorkGroup* before, const WorkGroup* after);

// "bf16", "tf32", ...: by the kernel's name, else by the types of the op's inputs; "" not known.
std::string_view precision_of(const WorkGroup& group);

// How many times the first dimension of the inputs grew, by the matches that agree on it for most of the time; 1 when
// shapes are the same or say nothing.
double batch_ratio(std::span<const WorkGroup> before, std::span<const WorkGroup> after,
                   std::span<const WorkMatch> matches);

}  // namespace firelane::compare

// JSON that ends in the middle, closed where it was whole: a program was killed while it wrote, a disk was full, a copy
// was interrupted.
#pragma once

#include <string>

namespace firelane::importer {

// Drops the record that the text ends in, and closes what is open around it: `[{"a": 1}, {"a":` becomes `[{"a": 1}]`. A
// record is an item of a list without a list in it, or a list in a list; what holds lists is kept as far as it goes.
// False, and the text as it was, when nothing is open at its end, or too much is.
bool close_cut_json(std::string& text);

}  // namespace firelane::importer

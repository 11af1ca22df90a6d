// JSON escapes -> UTF-8. What is not a valid escape stays as it stands; a lone surrogate
// becomes U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace firelane::importer {

// `text` is the inside of a JSON string, without its quotes. Replaces `out`.
void unescape_json(std::string_view text, std::string& out);

}  // namespace firelane::importer

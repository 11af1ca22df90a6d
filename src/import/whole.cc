#include "import/whole.h"

#include <algorithm>

namespace firelane::importer {

Result<std::string> read_whole_content(ByteSource& source, const ReadRequest& request) {
  constexpr size_t kPiece = size_t{4} << 20;
  std::string bytes;
  if (!request.is_compressed)
    bytes.reserve(static_cast<size_t>(std::min<uint64_t>(source.total_bytes() + 1, uint64_t{1} << 36)));
  for (size_t got = kPiece; got == kPiece;) {
    const size_t at = bytes.size();
    if (at > request.max_content_bytes) {
      return Error{request.name + ": unpacks to more than " + std::to_string(request.max_content_bytes) +
                   " bytes; is this a trace?"};
    }
    if (request.is_compressed) {
      bytes.resize(at + kPiece);
    } else {
      bytes.resize(std::min<size_t>(at + kPiece, static_cast<size_t>(source.total_bytes())));
    }
    const size_t wanted = bytes.size() - at;
    got = wanted == 0 ? 0 : source.read(bytes.data() + at, wanted);
    bytes.resize(at + got);
  }
  if (!source.fatal().empty()) return Error{request.name + ": " + source.fatal()};
  if (request.progress) request.progress(source.consumed_bytes(), source.total_bytes());
  return bytes;
}

}  // namespace firelane::importer

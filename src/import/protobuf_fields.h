// Fields of protobuf messages whose writer is not trusted, as text: for every format that is written in protobuf.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <string_view>

namespace firelane::importer {

using Message = protozero::pbf_reader;

// REQUIRES: the field is length-delimited.
inline std::string_view text_of(Message& field) {
  const auto view = field.get_view();
  return {view.data(), view.size()};
}
// A field of another type is skipped.
inline std::string_view bytes_or_none(Message& field) {
  if (field.wire_type() == protozero::pbf_wire_type::length_delimited) return text_of(field);
  field.skip();
  return {};
}

}  // namespace firelane::importer

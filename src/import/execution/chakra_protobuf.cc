#include "import/execution/chakra_protobuf.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <protozero/exception.hpp>

#include "base/json_writer.h"
#include "import/execution/node_parser.h"
#include "import/metadata.h"
#include "import/protobuf_fields.h"

namespace firelane::importer {

namespace {

using Wire = protozero::pbf_wire_type;

constexpr uint32_t kVersion = 1, kMetadataAttribute = 2;  // of GlobalMetadata
constexpr uint32_t kId = 1, kName = 2, kType = 3, kControl = 4, kData = 5, kStart = 6, kDuration = 7, kInputs = 8,
                   kOutputs = 9, kAttribute = 10, kStorage = 11;
constexpr uint32_t kValues = 1, kShapes = 2, kTypes = 3;  // of IOInfo
// For AttributeProto: a name, and one of a number of types of values. Those of lists are even.
constexpr uint32_t kAttributeName = 1, kDouble = 3, kFloat = 5, kInt32 = 7, kInt64 = 9, kUint32 = 11, kUint64 = 13,
                   kSint32 = 15, kSint64 = 17, kFixed32 = 19, kFixed64 = 21, kSfixed32 = 23, kSfixed64 = 25, kBool = 27,
                   kText = 29;

bool is_readable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= ' '; });
}

// The next message of a file: nothing at its end, and where it is torn.
class Messages {
 public:
  explicit Messages(std::string_view bytes) : rest_(bytes) {}

  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    uint64_t size = 0;
    size_t at = 0;
    for (unsigned shift = 0;; shift += 7, ++at) {
      if (at == rest_.size() || shift > 28) return torn();
      size |= (uint64_t{static_cast<uint8_t>(rest_[at])} & 127) << shift;
      if ((static_cast<uint8_t>(rest_[at]) & 128) == 0) break;
    }
    rest_.remove_prefix(at + 1);
    if (size > rest_.size()) {
      cut_ = rest_;
      return torn();
    }
    const std::string_view message = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(static_cast<size_t>(size));
    return message;
  }
  bool is_torn() const { return is_torn_; }
  // What there is of the message that the file ends in.
  std::string_view cut() const { return cut_; }

 private:
  std::optional<std::string_view> torn() {
    is_torn_ = true;
    return std::nullopt;
  }

  std::string_view rest_;
  std::string_view cut_;
  bool is_torn_ = false;
};

// Whether the fields are those of a node, as far as they are there.
bool looks_like_node(std::string_view bytes, bool is_whole) {
  bool is_named = false;
  try {
    Message node(bytes.data(), bytes.size());
    while (node.next()) {
      const bool is_packed_number = node.tag() == kControl || node.tag() == kData;
      const bool is_number =
          node.tag() == kId || node.tag() == kType || node.tag() == kStart || node.tag() == kDuration;
      if (node.tag() > kStorage) return false;
      const Wire wire = node.wire_type();
      if (is_number ? wire != Wire::varint
                    : wire != Wire::length_delimited && !(is_packed_number && wire == Wire::varint)) {
        return false;
      }
      if (node.tag() == kName) {
        const std::string_view name = text_of(node);
        if (name.empty() || !is_readable(name)) return false;
        is_named = true;
      } else {
        node.skip();
      }
    }
  } catch (const protozero::exception&) {
    if (is_whole) return false;
  }
  return is_named;
}

bool looks_like_metadata(std::string_view bytes) {
  try {
    Message metadata(bytes.data(), bytes.size());
    while (metadata.next()) {
      if (metadata.tag() > kMetadataAttribute || metadata.wire_type() != Wire::length_delimited) return false;
      const std::string_view value = text_of(metadata);
      if (metadata.tag() == kVersion && !is_readable(value)) return false;
      if (metadata.tag() == kMetadataAttribute && !value.starts_with('\n')) return false;  // begins with its name
    }
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

// ---- messages as JSON

// The value of an attribute. False, and nothing read, for lists and for what is none.
bool add_value(Message& field, JsonWriter& json) {
  const Wire wire = field.wire_type();
  switch (field.tag()) {
    case kDouble:
      if (wire != Wire::fixed64) return false;
      json.value(field.get_double());
      return true;
    case kFloat:
      if (wire != Wire::fixed32) return false;
      json.value(static_cast<double>(field.get_float()));
      return true;
    case kInt32:
    case kInt64:
      if (wire != Wire::varint) return false;
      json.value(field.get_int64());
      return true;
    case kUint32:
    case kUint64:
      if (wire != Wire::varint) return false;
      json.value(static_cast<int64_t>(field.get_uint64()));
      return true;
    case kSint32:
    case kSint64:
      if (wire != Wire::varint) return false;
      json.value(field.get_sint64());
      return true;
    case kFixed32:
    case kSfixed32:
      if (wire != Wire::fixed32) return false;
      json.value(field.get_sfixed32());
      return true;
    case kFixed64:
    case kSfixed64:
      if (wire != Wire::fixed64) return false;
      json.value(field.get_sfixed64());
      return true;
    case kBool:
      if (wire != Wire::varint) return false;
      json.value(field.get_bool());
      return true;
    case kText:
      if (wire != Wire::length_delimited) return false;
      json.value(text_of(field));
      return true;
    default: return false;
  }
}

// The name of an attribute, and its value as JSON; "" for those that are lists.
struct Attribute {
  std::string_view name;
  std::string json;
};
Attribute read_attribute(std::string_view bytes) {
  Attribute out;
  Message attribute(bytes.data(), bytes.size());
  while (attribute.next()) {
    if (attribute.tag() == kAttributeName && attribute.wire_type() == Wire::length_delimited) {
      out.name = text_of(attribute);
      continue;
    }
    JsonWriter json;
    if (add_value(attribute, json)) {
      out.json = json.text();
    } else {
      attribute.skip();
    }
  }
  return out;
}

void add_ids(Message& field, JsonWriter& json) {
  if (field.wire_type() == Wire::length_delimited) {
    for (const uint64_t id : field.get_packed_uint64()) json.value(static_cast<int64_t>(id));
  } else {
    json.value(static_cast<int64_t>(field.get_uint64()));
  }
}

void add_side(std::string_view bytes, JsonWriter& json) {
  json.begin_object();
  Message side(bytes.data(), bytes.size());
  while (side.next()) {
    const char* const key = side.tag() == kValues   ? "values"
                            : side.tag() == kShapes ? "shapes"
                            : side.tag() == kTypes  ? "types"
                                                    : nullptr;
    if (key == nullptr || side.wire_type() != Wire::length_delimited) {
      side.skip();
      continue;
    }
    json.key(key).value(text_of(side));
  }
  json.end_object();
}

// Throws what protozero throws for bytes that are no message.
std::string node_json(std::string_view bytes) {
  JsonWriter json;
  std::vector<Attribute> attributes;
  json.begin_object();
  // Repeated numbers may come in several fields: each kind is one list.
  for (const auto& [tag, key] : {std::pair(kControl, "ctrl_deps"), std::pair(kData, "data_deps")}) {
    json.key(key).begin_array();
    Message node(bytes.data(), bytes.size());
    while (node.next()) {
      const bool is_here =
          node.tag() == tag && (node.wire_type() == Wire::length_delimited || node.wire_type() == Wire::varint);
      is_here ? add_ids(node, json) : node.skip();
    }
    json.end_array();
  }
  Message node(bytes.data(), bytes.size());
  while (node.next()) {
    const bool is_number = node.wire_type() == Wire::varint;
    const bool is_bytes = node.wire_type() == Wire::length_delimited;
    if (node.tag() == kId && is_number) {
      json.key("id").value(static_cast<int64_t>(node.get_uint64()));
    } else if (node.tag() == kName && is_bytes) {
      json.key("name").value(text_of(node));
    } else if ((node.tag() == kStart || node.tag() == kDuration) && is_number) {
      json.key(node.tag() == kStart ? "start_time_micros" : "duration_micros");
      json.value(static_cast<int64_t>(node.get_uint64()));
    } else if ((node.tag() == kInputs || node.tag() == kOutputs) && is_bytes) {
      json.key(node.tag() == kInputs ? "inputs" : "outputs");
      add_side(text_of(node), json);
    } else if (node.tag() == kAttribute && is_bytes) {
      attributes.push_back(read_attribute(text_of(node)));
    } else {
      node.skip();
    }
  }
  json.key("attr").begin_array();
  for (const Attribute& each : attributes) {
    if (each.name.empty() || each.json.empty()) continue;
    json.begin_object().key("name").value(each.name).key("value").raw(each.json).end_object();
  }
  json.end_array().end_object();
  return json.text();
}

void read_metadata(std::string_view bytes, ExecutionTrace& out) {
  Message metadata(bytes.data(), bytes.size());
  while (metadata.next()) {
    if (metadata.wire_type() != Wire::length_delimited) {
      metadata.skip();
    } else if (metadata.tag() == kVersion) {
      out.schema = text_of(metadata).substr(0, 64);
    } else if (metadata.tag() == kMetadataAttribute) {
      const Attribute attribute = read_attribute(text_of(metadata));
      if (attribute.name == "pid") {
        std::from_chars(attribute.json.data(), attribute.json.data() + attribute.json.size(), out.pid);
      }
      if (!attribute.name.empty() && !attribute.json.empty())
        keep_metadata(std::string(attribute.name), attribute.json, out.metadata, out.losses);
    } else {
      metadata.skip();
    }
  }
}

}  // namespace

bool is_chakra_protobuf(std::string_view begin) {
  Messages messages(begin);
  const auto metadata = messages.next();
  if (!metadata || !looks_like_metadata(*metadata)) return false;
  const auto node = messages.next();
  return node ? looks_like_node(*node, true) : looks_like_node(messages.cut(), false);
}

Result<ExecutionTrace> parse_chakra_protobuf(std::string_view bytes, const std::string& name) {
  ExecutionTrace out{.format = "Chakra execution trace"};
  out.content_bytes = bytes.size();
  Messages messages(bytes);
  NodeParser parser;
  bool is_first = true;
  while (const auto message = messages.next()) {
    try {
      if (std::exchange(is_first, false)) {
        read_metadata(*message, out);
        continue;
      }
      ExecutionNode node;
      node.id = node.parent = kNoNumber;  // 0 is an id here, and numbers that are 0 are not written
      (void)parser.read(node_json(*message), node);
      if (node.id == kNoNumber) node.id = 0;
      if (node.name.empty() || node.id < 0) {
        ++out.losses[Stat::kEventMalformed];
      } else {
        out.nodes.push_back(std::move(node));
      }
    } catch (const protozero::exception&) {
      ++out.losses[Stat::kMessageMalformed];
    }
  }
  if (messages.is_torn()) out.losses[Stat::kTruncated] = 1;
  if (out.nodes.empty() && messages.is_torn()) {
    return Error{name + ": an execution trace of Chakra that ends in its first node; copy the file again"};
  }
  if (out.nodes.empty()) return Error{name + ": an execution trace of Chakra in which nothing was called"};
  sort_nodes(out);
  return out;
}

}  // namespace firelane::importer

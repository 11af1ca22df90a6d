#include "import/execution/node_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/json_writer.h"
#include "model/raw.h"

namespace firelane::importer {

namespace {

using JsonValue = simdjson::dom::element;
using JsonList = simdjson::dom::array;

constexpr int64_t kMostTensorBytes = int64_t{1} << 50;  // of one tensor
constexpr size_t kMostInputBytes = size_t{1} << 16;
constexpr int kMostTensorDepth = 8;

// Protobuf's JSON writes numbers of 64 bits as texts.
int64_t integer_in(const JsonValue& value) {
  int64_t number = kNoNumber;
  if (value.get(number) == simdjson::SUCCESS) return number;
  double real = 0;
  if (value.get(real) == simdjson::SUCCESS && std::fabs(real) < 9e18) return static_cast<int64_t>(real);
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS || text.empty()) return kNoNumber;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() ? number : kNoNumber;
}

double micros_in(const JsonValue& value) {
  double number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  const int64_t whole = integer_in(value);
  return whole == kNoNumber ? std::nan("") : static_cast<double>(whole);
}

// [tensor id, storage id, offset, elements, bytes of one, device]; sparse and undefined tensors have no storage.
bool read_tensor(const JsonList& tuple, NodeTensor& out) {
  int64_t numbers[5];
  size_t count = 0;
  std::string_view device;
  for (const JsonValue item : tuple) {
    if (count < 5 && item.get(numbers[count]) != simdjson::SUCCESS) return false;
    if (count == 5 && item.get(device) != simdjson::SUCCESS) return false;
    if (++count > 6) return false;
  }
  if (count != 6) return false;
  const auto& [tensor, storage, offset, elements, size] = numbers;
  // Ids of tensors and storages come from one counter.
  out.storage = storage > 0 ? storage : tensor;
  const bool fits = elements >= 0 && size >= 0 && size < 1024 && elements < kMostTensorBytes / 1024;
  out.bytes = fits ? elements * size : 0;
  return true;
}

void collect_tensors(const JsonValue& value, int depth, std::vector<NodeTensor>& out, bool is_written) {
  JsonList list;
  if (depth > kMostTensorDepth || value.get(list) != simdjson::SUCCESS) return;
  NodeTensor tensor{.is_written = is_written};
  if (read_tensor(list, tensor)) {
    if (tensor.storage > 0) out.push_back(tensor);
    return;
  }
  for (const JsonValue item : list) collect_tensors(item, depth + 1, out, is_written);
}

// Which arguments of "aten::add_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)" are changed.
std::vector<bool> changed_arguments(std::string_view schema) {
  std::vector<bool> changed;
  const size_t open = schema.find('(');
  if (open == std::string_view::npos) return changed;
  int depth = 1;
  bool is_changed = false;
  size_t begin = open + 1;
  for (size_t at = open + 1; at < schema.size() && depth > 0; ++at) {
    const char c = schema[at];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == '!') is_changed = true;
    if (depth == 0 || (depth == 1 && c == ',')) {
      std::string_view argument = schema.substr(begin, at - begin);
      while (!argument.empty() && argument.front() == ' ') argument.remove_prefix(1);
      // A bare * only says that names follow.
      if (!argument.empty() && argument != "*") changed.push_back(std::exchange(is_changed, false));
      begin = at + 1;
    }
  }
  return changed;
}

// Ops of other libraries often do not mark what they change (c10d::allreduce_), but their names say it.
bool is_in_place_by_name(std::string_view name, std::string_view schema) {
  return name.ends_with('_') && !name.ends_with("__") && schema.find('!') == std::string_view::npos;
}

// Each storage once: a change wins, and the larger of two tensors in it.
void merge_storages(std::vector<NodeTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const NodeTensor& a, const NodeTensor& b) { return a.storage < b.storage; });
  size_t kept = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (kept > 0 && tensors[kept - 1].storage == tensors[i].storage) {
      tensors[kept - 1].bytes = std::max(tensors[kept - 1].bytes, tensors[i].bytes);
      tensors[kept - 1].is_written = tensors[kept - 1].is_written || tensors[i].is_written;
    } else {
      tensors[kept++] = tensors[i];
    }
  }
  tensors.resize(kept);
}

// The inputs of a node in the words of torch.profiler's traces: "float" for "Tensor(float)", "Scalar" for "Int".
class InputTexts {
 public:
  InputTexts(const simdjson::simdjson_result<JsonValue>& values, const simdjson::simdjson_result<JsonValue>& types) {
    JsonList list;
    if (types.get(list) != simdjson::SUCCESS) return;
    for (const JsonValue item : list) {
      std::string_view type;
      (void)item.get(type);
      types_.push_back(word_for(type));
    }
    if (values.get(list) != simdjson::SUCCESS) return;
    for (const JsonValue item : list) {
      std::string_view text;
      if (item.get(text) == simdjson::SUCCESS) {
        values_.emplace_back(text == "<None>" ? "" : text);
      } else {
        values_.push_back(simdjson::minify(item));
      }
    }
  }

  std::string types() const {
    return list_of(types_.size(), [&](size_t i, std::string& out) { append_quoted(types_[i], out); });
  }

  // What is no tensor, as it is; nothing of tensors.
  std::string concrete() const {
    return list_of(types_.size(), [&](size_t i, std::string& out) {
      const bool is_plain = types_[i].starts_with("Scalar") || types_[i] == "String";
      append_quoted(is_plain && i < values_.size() ? values_[i] : "", out);
    });
  }

  // For scalars and their lists: [].
  std::string sizes(const simdjson::simdjson_result<JsonValue>& sizes) const {
    JsonList list;
    if (sizes.get(list) != simdjson::SUCCESS) return "";
    std::vector<std::string> texts;
    for (const JsonValue item : list) texts.push_back(simdjson::minify(item));
    return list_of(texts.size(), [&](size_t i, std::string& out) {
      const bool is_plain = i < types_.size() && (types_[i].empty() || types_[i].starts_with("Scalar"));
      out += is_plain ? "[]" : texts[i];
    });
  }

 private:
  static std::string word_for(std::string_view type) {
    if (type.starts_with("Tensor(") && type.ends_with(')')) return std::string(type.substr(7, type.size() - 8));
    if (type.starts_with("GenericList"))
      return type.find("Tensor(") == std::string_view::npos ? "ScalarList" : "TensorList";
    if (type == "Int" || type == "Double" || type == "Bool" || type == "SymInt") return "Scalar";
    return type == "String" ? "String" : "";
  }

  static void append_quoted(std::string_view text, std::string& out) {
    out += '"';
    append_json_escaped(out, text);
    out += '"';
  }

  // "" for an empty list, and for one that is too long to be shown.
  template <typename Append>
  static std::string list_of(size_t count, const Append& append) {
    if (count == 0) return "";
    std::string out = "[";
    for (size_t i = 0; i < count && out.size() < kMostInputBytes; ++i) {
      if (i > 0) out += ", ";
      append(i, out);
    }
    return out.size() < kMostInputBytes ? out + "]" : "";
  }

  std::vector<std::string> types_;
  std::vector<std::string> values_;
};

void take(int64_t& into, const JsonValue& value) {
  if (const int64_t number = integer_in(value); number != kNoNumber) into = number;
}

void take_time(int64_t& into, const JsonValue& micros) {
  const double ns = micros_in(micros) * 1000;
  if (std::isfinite(ns) && ns >= 0 && ns < static_cast<double>(kMaxTimeNs) / 4) into = std::llround(ns);
}

void take_dependencies(std::vector<int64_t>& into, const JsonValue& value) {
  JsonList list;
  if (value.get(list) != simdjson::SUCCESS) return;
  for (const JsonValue item : list) {
    if (const int64_t id = integer_in(item); id != kNoNumber) into.push_back(id);
  }
}

void take_text(std::string& into, const JsonValue& value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) into = text;
}

void read_attribute(std::string_view name, const JsonValue& value, ExecutionNode& node) {
  if (name == "rf_id") return take(node.rf_id, value);
  if (name == "tid") return take(node.thread, value);
  if (name == "fw_tid") return take(node.forward_thread, value);
  if (name == "seq_id") return take(node.sequence, value);
  if (name == "scope") return take(node.scope, value);
  if (name == "op_schema") return take_text(node.schema, value);
}

// {"name": "rf_id", "type": "uint64", "value": 7}, or Chakra's {"name": "rf_id", "uint64Val": "7"}.
void read_attributes(const JsonValue& list, ExecutionNode& node) {
  JsonList attributes;
  if (list.get(attributes) != simdjson::SUCCESS) return;
  for (const JsonValue attribute : attributes) {
    std::string_view name;
    simdjson::dom::object object;
    if (attribute["name"].get(name) != simdjson::SUCCESS || attribute.get(object) != simdjson::SUCCESS) continue;
    for (const auto& [key, value] : object) {
      if (key != "name" && key != "type" && key != "docString") read_attribute(name, value, node);
    }
  }
}

void read_field(std::string_view key, const JsonValue& value, ExecutionNode& node) {
  if (key == "id") return take(node.id, value);
  if (key == "name") return take_text(node.name, value);
  if (key == "parent") return take(node.parent, value);
  if (key == "ctrl_deps" || key == "ctrlDeps") {
    std::vector<int64_t> ids;
    take_dependencies(ids, value);
    if (!ids.empty()) node.parent = ids.front();
    return take(node.parent, value);
  }
  if (key == "data_deps" || key == "dataDeps") return take_dependencies(node.data_deps, value);
  if (key == "start_time_micros" || key == "startTimeMicros" || key == "ts") return take_time(node.start_ns, value);
  if (key == "duration_micros" || key == "durationMicros" || key == "dur" || key == "inclusive_dur")
    return take_time(node.duration_ns, value);
  if (key == "attrs" || key == "attr") return read_attributes(value, node);
  read_attribute(key, value, node);
}

void read_list(const simdjson::simdjson_result<JsonValue>& value, const std::vector<bool>& changed, bool by_name,
               std::vector<NodeTensor>& out) {
  JsonList list;
  if (value.get(list) != simdjson::SUCCESS) return;
  size_t place = 0;
  for (const JsonValue item : list) {
    collect_tensors(item, 0, out, by_name || (place < changed.size() && changed[place]));
    ++place;
  }
  merge_storages(out);
}

// Python's escapes inside of a text, as JSON has them; where `at` stands behind the backslash.
bool append_escape(std::string_view text, size_t& at, std::string& out) {
  if (at >= text.size()) return false;
  const char c = text[at++];
  switch (c) {
    case '\'': out += c; return true;
    case '"': out += "\\\""; return true;
    case '\\': out += "\\\\"; return true;
    case 'n':
    case 'r':
    case 't':
    case 'b':
    case 'f': (out += '\\') += c; return true;
    case 'x':
    case 'u': {
      const size_t digits = c == 'x' ? 2 : 4;
      if (text.size() - at < digits) return false;
      out += c == 'x' ? "\\u00" : "\\u";
      for (size_t i = 0; i < digits; ++i, ++at) {
        if (std::isxdigit(static_cast<unsigned char>(text[at])) == 0) return false;
        out += text[at];
      }
      return true;
    }
    default: out += "\\\\"; return out += c, true;  // Python prints no other; what is no escape stays
  }
}

bool append_python_text(std::string_view text, size_t& at, std::string& out) {
  const char quote = text[at++];
  out += '"';
  while (at < text.size() && text[at] != quote) {
    const char c = text[at++];
    if (c == '\\') {
      if (!append_escape(text, at, out)) return false;
    } else if (c == '"') {
      out += "\\\"";
    } else if (static_cast<unsigned char>(c) < ' ') {
      out += ' ';
    } else {
      out += c;
    }
  }
  if (at >= text.size()) return false;
  ++at;
  out += '"';
  return true;
}

}  // namespace

std::optional<std::string> json_of_python_list(std::string_view text) {
  if (text.empty() || (text[0] != '[' && text[0] != '(')) return std::nullopt;
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\'' || c == '"') {
      if (!append_python_text(text, at, out)) return std::nullopt;
    } else if (c == '(' || c == '[') {
      out += '[';
      ++at;
    } else if (c == ')' || c == ']') {
      // "(1,)"
      while (!out.empty() && (out.back() == ' ' || out.back() == ',')) out.pop_back();
      out += ']';
      ++at;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      size_t end = at;
      while (end < text.size() && ((text[end] >= 'a' && text[end] <= 'z') || (text[end] >= 'A' && text[end] <= 'Z')))
        ++end;
      const std::string_view word = text.substr(at, end - at);
      const bool is_exponent = word == "e" || word == "E";
      const bool is_infinite = word == "inf" || word == "nan" || word == "infinity";
      if (is_infinite && !out.empty() && out.back() == '-') out.pop_back();
      out += word == "True" || word == "true"     ? "true"
             : word == "False" || word == "false" ? "false"
             : is_exponent                        ? "e"
                                                  : "null";
      at = end;
    } else {
      out += c;
      ++at;
    }
  }
  return out;
}

bool NodeParser::read(std::string_view text, ExecutionNode& node) {
  padded_.assign(text);
  padded_.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  JsonValue root;
  if (parser_.parse(padded_.data(), padded_.size(), false).get(root) != simdjson::SUCCESS) return false;
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) return false;
  for (const auto& [key, value] : object) read_field(key, value, node);
  read_values(root, node);
  return node.id > 0 && !node.name.empty();
}

NodeParser::Found NodeParser::list_in(const Found& value, List which) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return value;
  const std::optional<std::string> json = json_of_python_list(text);
  if (!json) return value;
  return of_lists_[which].parse(simdjson::padded_string(*json));
}

void NodeParser::read_values(const JsonValue& root, ExecutionNode& node) {
  const std::vector<bool> changed = changed_arguments(node.schema);
  const bool by_name = is_in_place_by_name(node.name, node.schema);
  JsonValue side;
  const bool is_nested = root["inputs"].get(side) == simdjson::SUCCESS && side.is_object();
  const Found values = list_in(is_nested ? side["values"] : root["inputs"], kValues);
  read_list(values, changed, by_name, node.inputs);
  const InputTexts texts(values, list_in(is_nested ? side["types"] : root["input_types"], kTypes));
  node.types = texts.types();
  node.concrete = texts.concrete();
  node.dims = texts.sizes(list_in(is_nested ? side["shapes"] : root["input_shapes"], kShapes));
  node.strides = texts.sizes(list_in(is_nested ? side["strides"] : root["input_strides"], kStrides));
  if (is_nested && root["outputs"].get(side) != simdjson::SUCCESS) return;
  read_list(list_in(is_nested ? side["values"] : root["outputs"], kOutputs), {}, false, node.outputs);
}

}  // namespace firelane::importer

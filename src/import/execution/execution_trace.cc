#include "import/execution/execution_trace.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "import/execution/node_parser.h"
#include "import/json/scan.h"
#include "import/metadata.h"

namespace firelane::importer {

namespace {

class TraceParser {
 public:
  TraceParser(std::string text, const std::string& name) : text_(std::move(text)), name_(name) {}

  Result<ExecutionTrace> run() {
    out_.content_bytes = text_.size();
    size_t at = skip_space(text_, 0);
    if (at >= text_.size() || text_[at] != '{') return Error{name_ + ": not an execution trace (no JSON object)"};
    ++at;
    while (read_key(at)) {
    }
    if (!has_nodes_) return Error{name_ + ": an execution trace without nodes; let the program finish writing it"};
    if (out_.nodes.empty() && out_.losses[Stat::kTruncated] > 0) {
      return Error{name_ + ": an execution trace that ends in its first node; copy the file again"};
    }
    if (out_.nodes.empty()) return Error{name_ + ": an execution trace in which nothing was called"};
    sort_nodes(out_);
    return std::move(out_);
  }

 private:
  // A key and its value; false at the end of the object, or where it is torn.
  bool read_key(size_t& at) {
    at = skip_space(text_, at);
    if (at < text_.size() && text_[at] == ',') at = skip_space(text_, at + 1);
    if (at < text_.size() && text_[at] == '}') return false;
    const size_t key_end = at < text_.size() && text_[at] == '"' ? value_end(text_, at) : kNotFound;
    if (key_end == kNotFound) return torn();
    const std::string key = text_.substr(at + 1, key_end - at - 2);
    at = skip_space(text_, key_end);
    if (at >= text_.size() || text_[at] != ':') return torn();
    at = skip_space(text_, at + 1);
    if (key == "nodes" && at < text_.size() && text_[at] == '[') return read_nodes(at);
    const size_t end = at < text_.size() ? value_end(text_, at) : kNotFound;
    if (end == kNotFound) return torn();
    keep(key, text_.substr(at, end - at));
    at = end;
    return true;
  }

  bool torn() {
    out_.losses[Stat::kTruncated] = 1;
    return false;
  }

  void keep(const std::string& key, std::string json) {
    if (key == "pid") std::from_chars(json.data(), json.data() + json.size(), out_.pid);
    if (key == "schema" && json.size() >= 2) out_.schema = json.substr(1, json.size() - 2);
    keep_metadata(key, std::move(json), out_.metadata, out_.losses);
  }

  bool read_nodes(size_t& at) {
    has_nodes_ = true;
    NodeParser parser;
    for (++at;;) {
      at = skip_space(text_, at);
      if (at < text_.size() && text_[at] == ',') at = skip_space(text_, at + 1);
      if (at < text_.size() && text_[at] == ']') {
        ++at;
        return true;
      }
      const size_t end = at < text_.size() ? value_end(text_, at) : kNotFound;
      if (end == kNotFound || end <= at) return torn();
      ExecutionNode node;
      if (parser.read(std::string_view(text_).substr(at, end - at), node)) {
        out_.nodes.push_back(std::move(node));
      } else {
        ++out_.losses[Stat::kEventMalformed];
      }
      at = end;
    }
  }

  std::string text_;
  const std::string& name_;
  ExecutionTrace out_;
  bool has_nodes_ = false;
};

// The key with a colon behind it.
size_t find_json_key(std::string_view text, std::string_view key) {
  const std::string quoted = "\"" + std::string(key) + "\"";
  for (size_t at = text.find(quoted); at != std::string_view::npos; at = text.find(quoted, at + 1)) {
    const size_t colon = skip_space(text, at + quoted.size());
    if (colon < text.size() && text[colon] == ':') return at;
  }
  return std::string_view::npos;
}

}  // namespace

bool is_execution_trace(std::string_view begin) {
  const size_t open = skip_space(begin, 0);
  if (open >= begin.size() || begin[open] != '{') return false;
  if (find_json_key(begin, "traceEvents") != std::string_view::npos) return false;
  if (find_json_key(begin, "nodes") == std::string_view::npos) return false;
  return find_json_key(begin, "schema") != std::string_view::npos ||
         find_json_key(begin, "ctrl_deps") != std::string_view::npos ||
         find_json_key(begin, "rf_id") != std::string_view::npos;
}

Result<ExecutionTrace> parse_execution_trace(std::string text, const std::string& name) {
  return TraceParser(std::move(text), name).run();
}

void sort_nodes(ExecutionTrace& trace) {
  std::vector<ExecutionNode>& nodes = trace.nodes;
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const ExecutionNode& a, const ExecutionNode& b) { return a.id < b.id; });
  const size_t before = nodes.size();
  const auto same = [](const ExecutionNode& a, const ExecutionNode& b) { return a.id == b.id; };
  nodes.erase(std::unique(nodes.begin(), nodes.end(), same), nodes.end());
  trace.losses[Stat::kEventMalformed] += before - nodes.size();
}

bool is_root_node(const ExecutionNode& node) { return node.name.starts_with("[pytorch|profiler|execution_"); }

}  // namespace firelane::importer

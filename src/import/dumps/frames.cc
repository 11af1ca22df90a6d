#include "import/dumps/frames.h"

#include <algorithm>
#include <string_view>

#include "base/hash.h"
#include "base/text.h"

namespace firelane::importer {

namespace {

constexpr size_t kMostFrames = 512;  // of a stack that are looked at
constexpr size_t kMostStackBytes = 16'384;
constexpr size_t kPlaces = 16'381;  // a prime: stacks lie at even distances

// "at::_ops::to_dtype::call(at::Tensor const&, ...)" -> "to_dtype".
std::string_view operator_called(std::string_view function) {
  constexpr std::string_view kOps = "at::_ops::";
  if (!function.starts_with(kOps)) return {};
  const std::string_view rest = function.substr(kOps.size());
  const size_t end = rest.find("::call(");
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

// "torch::autograd::generated::AddmmBackward0::apply(...)" -> "AddmmBackward0".
std::string_view backward_function(std::string_view function) {
  constexpr std::string_view kNodes = "torch::autograd::generated::";
  if (!function.starts_with(kNodes)) return {};
  const std::string_view rest = function.substr(kNodes.size());
  return rest.substr(0, rest.find("::"));
}

bool is_python(std::string_view filename) { return filename.ends_with(".py") || filename.starts_with("<"); }
bool is_users(std::string_view filename) {
  return !filename.starts_with("<") && !contains(filename, "site-packages/") && !contains(filename, "/torch/") &&
         !contains(filename, "lib/python");
}

}  // namespace

Frames::Frames(const Document& document, StringPool& strings)
    : document_(document),
      strings_(strings),
      name_(document, "name"),
      filename_(document, "filename"),
      line_(document, "line"),
      text_of_list_(document.container_count(), 0) {}

StackText Frames::stack_of(Value frames) {
  if (document_.type(frames) != ValueType::kList || document_.size(frames) == 0) return {};
  uint32_t& text = text_of_list_[document_.container(frames)];
  if (text == 0) text = find(frames) + 1;
  return texts_[text - 1];
}

uint32_t Frames::find(Value frames) {
  const std::string_view bytes = document_.item_bytes(frames);
  if (bytes.empty()) return make(frames);
  if (by_place_.empty()) by_place_.resize(kPlaces);
  Place& place = by_place_[reinterpret_cast<uintptr_t>(bytes.data()) / sizeof(Value) % kPlaces];
  if (place.frames != bytes.data() || place.bytes != bytes.size()) place = {bytes.data(), bytes.size(), make(frames)};
  return place.text;
}

uint64_t Frames::hash_of(Value frames) const {
  if (const std::string_view bytes = document_.item_bytes(frames); !bytes.empty()) return hash_text(bytes);
  uint64_t hash = 0;
  size_t count = 0;
  document_.each(frames, [&](Value frame) {
    hash = mix_hash(hash, frame.bits);
    return ++count < kMostFrames;
  });
  return hash;
}

uint32_t Frames::make(Value frames) {
  const uint64_t hash = hash_of(frames);
  std::vector<Known>& same_hash = by_content_[hash];
  for (const Known& known : same_hash) {
    if (is_same(known.frames, frames)) return known.text;
  }
  std::string stack;
  std::string place;
  std::string_view op;
  bool is_in_python = false;
  size_t count = 0;
  document_.each(frames, [&](Value frame) {
    const std::string_view function = document_.text(name_.of(frame));
    const std::string_view file = document_.text(filename_.of(frame));
    const std::string_view node = backward_function(function);
    std::string shown;
    if (is_python(file)) {
      is_in_python = true;
      shown = std::string(file) + "(" + std::to_string(document_.integer(line_.of(frame)).value_or(0)) +
              "): " + std::string(function);
      if (place.empty() && is_users(file)) place = shown.substr(file.rfind('/') + 1);
    } else if (!node.empty()) {
      shown = "autograd: " + std::string(node);
    } else if (function.starts_with("torch::autograd::Engine::thread_main")) {
      shown = "autograd engine";
    }
    // What Python, or the engine, called: the last one before their own frames.
    if (const std::string_view called = operator_called(function); !is_in_python && !called.empty()) op = called;
    // A frame's name holds what separates frames only where a file is named so on purpose.
    std::replace(shown.begin(), shown.end(), ';', ',');
    const bool fits = stack.size() + shown.size() < kMostStackBytes;
    if (!shown.empty() && fits) stack += (stack.empty() ? "" : ";") + shown;
    return ++count < kMostFrames && fits;
  });
  StackText text{.stack = strings_.intern(stack), .place = strings_.intern(place)};
  if (!op.empty()) text.op = strings_.intern("aten::" + std::string(op));
  texts_.push_back(text);
  same_hash.push_back({frames, static_cast<uint32_t>(texts_.size() - 1)});
  return same_hash.back().text;
}

bool Frames::is_same(Value a, Value b) const {
  const std::string_view bytes = document_.item_bytes(a);
  if (!bytes.empty()) return bytes == document_.item_bytes(b);
  if (document_.size(a) != document_.size(b)) return false;
  std::vector<Value> first;
  document_.each(a, [&](Value frame) {
    first.push_back(frame);
    return first.size() < kMostFrames;
  });
  size_t at = 0;
  bool same = true;
  document_.each(b, [&](Value frame) {
    same = frame == first[at++];
    return same && at < first.size();
  });
  return same;
}

}  // namespace firelane::importer

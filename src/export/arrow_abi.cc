// The C side of export/arrow.h: fills the ABI structs and owns what they point to.
//
// Every exported struct, children and dictionaries included, can be moved out of its parent
// and released alone, so each one owns a share of the table.
#include <cerrno>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/check.h"
#include "export/arrow.h"

namespace firelane::exporter {

namespace {

using TablePtr = std::shared_ptr<const ArrowTable>;

const char* format_of(ArrowType type) {
  switch (type) {
    case ArrowType::kInt8: return "c";
    case ArrowType::kUInt16: return "S";
    case ArrowType::kInt32: return "i";
    case ArrowType::kUInt32: return "I";
    case ArrowType::kInt64: return "l";
    case ArrowType::kUInt64: return "L";
    case ArrowType::kFloat: return "f";
    case ArrowType::kDouble: return "g";
    case ArrowType::kBool: return "b";
    case ArrowType::kText: return "U";
  }
  check_failed(__FILE__, __LINE__, "every ArrowType has a format");
}

// What private_data points to, for both kinds of struct.
template <typename Struct>
struct Owned {
  TablePtr table;
  std::vector<const void*> buffers;
  std::vector<std::unique_ptr<Struct>> children;
  std::vector<Struct*> child_pointers;
  std::unique_ptr<Struct> dictionary;
};

template <typename Struct>
void release(Struct* it) {
  auto* owned = static_cast<Owned<Struct>*>(it->private_data);
  for (const auto& child : owned->children) {
    if (child->release) child->release(child.get());
  }
  if (owned->dictionary && owned->dictionary->release) owned->dictionary->release(owned->dictionary.get());
  it->release = nullptr;
  delete owned;
}

// Gives `it` its owner; everything the owner holds stays where it is from here on.
template <typename Struct>
void own(Struct* it, std::unique_ptr<Owned<Struct>> owned) {
  for (const auto& child : owned->children) owned->child_pointers.push_back(child.get());
  it->n_children = static_cast<int64_t>(owned->children.size());
  it->children = owned->child_pointers.empty() ? nullptr : owned->child_pointers.data();
  it->dictionary = owned->dictionary.get();
  it->release = &release<Struct>;
  it->private_data = owned.release();
}

// Names point into the table's columns, formats are literals: nothing to copy.
void fill_schema(const TablePtr& table, const char* format, const char* name, int64_t flags,
                 std::unique_ptr<Owned<ArrowSchema>> owned, ArrowSchema* out) {
  *out = {};
  out->format = format;
  out->name = name;
  out->flags = flags;
  owned->table = table;
  own(out, std::move(owned));
}

std::unique_ptr<ArrowSchema> column_schema(const TablePtr& table, const ArrowColumn& column) {
  auto owned = std::make_unique<Owned<ArrowSchema>>();
  if (column.texts && column.type != ArrowType::kText) {
    owned->dictionary = std::make_unique<ArrowSchema>();
    fill_schema(table, format_of(ArrowType::kText), "", 0, std::make_unique<Owned<ArrowSchema>>(),
                owned->dictionary.get());
  }
  auto schema = std::make_unique<ArrowSchema>();
  fill_schema(table, format_of(column.type), column.name.c_str(), column.nullable ? ARROW_FLAG_NULLABLE : 0,
              std::move(owned), schema.get());
  return schema;
}

void fill_array(const TablePtr& table, size_t length, int64_t null_count, std::unique_ptr<Owned<ArrowArray>> owned,
                ArrowArray* out) {
  *out = {};
  out->length = static_cast<int64_t>(length);
  out->null_count = null_count;
  out->n_buffers = static_cast<int64_t>(owned->buffers.size());
  out->buffers = owned->buffers.data();
  owned->table = table;
  own(out, std::move(owned));
}

// Empty vectors may have no address; some consumers want one all the same.
const void* address_of(const void* data) {
  static constexpr int64_t kNothing = 0;
  return data ? data : &kNothing;
}

std::unique_ptr<ArrowArray> column_array(const TablePtr& table, size_t index) {
  const ArrowColumn& column = table->columns()[index];
  const ArrowTable::Bitmaps& bitmaps = table->bitmaps(index);
  auto owned = std::make_unique<Owned<ArrowArray>>();
  owned->buffers.push_back(bitmaps.valid.empty() ? nullptr : bitmaps.valid.data());
  if (column.type == ArrowType::kText) {
    owned->buffers.push_back(column.texts->offsets());
    owned->buffers.push_back(column.texts->bytes());
  } else {
    const bool packed = column.type == ArrowType::kBool;
    owned->buffers.push_back(address_of(packed ? bitmaps.values.data() : column.values));
  }
  if (column.texts && column.type != ArrowType::kText) {
    auto dictionary = std::make_unique<Owned<ArrowArray>>();
    dictionary->buffers = {nullptr, column.texts->offsets(), column.texts->bytes()};
    owned->dictionary = std::make_unique<ArrowArray>();
    fill_array(table, column.texts->size(), 0, std::move(dictionary), owned->dictionary.get());
  }
  auto array = std::make_unique<ArrowArray>();
  fill_array(table, table->rows(), bitmaps.null_count, std::move(owned), array.get());
  return array;
}

struct Stream {
  TablePtr table;
  bool done = false;
};

// A failed allocation is the only thing that can go wrong, and C callers cannot catch it.
template <typename Fill>
int guarded(const Fill& fill) {
  try {
    fill();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  return guarded([&] { export_schema(static_cast<Stream*>(stream->private_data)->table, out); });
}

int stream_next(ArrowArrayStream* stream, ArrowArray* out) {
  auto* state = static_cast<Stream*>(stream->private_data);
  if (state->done) {
    *out = {};  // release == nullptr: the end
    return 0;
  }
  return guarded([&] {
    auto owned = std::make_unique<Owned<ArrowArray>>();
    owned->buffers.push_back(nullptr);
    for (size_t i = 0; i < state->table->columns().size(); ++i) {
      owned->children.push_back(column_array(state->table, i));
    }
    fill_array(state->table, state->table->rows(), 0, std::move(owned), out);
    state->done = true;
  });
}

const char* stream_error(ArrowArrayStream*) { return "out of memory"; }

void stream_release(ArrowArrayStream* stream) {
  delete static_cast<Stream*>(stream->private_data);
  stream->release = nullptr;
}

}  // namespace

void export_schema(const TablePtr& table, ArrowSchema* out) {
  auto owned = std::make_unique<Owned<ArrowSchema>>();
  for (const ArrowColumn& column : table->columns()) owned->children.push_back(column_schema(table, column));
  fill_schema(table, "+s", "", 0, std::move(owned), out);
}

void export_stream(TablePtr table, ArrowArrayStream* out) {
  *out = {};
  out->get_schema = &stream_schema;
  out->get_next = &stream_next;
  out->get_last_error = &stream_error;
  out->release = &stream_release;
  out->private_data = new Stream{.table = std::move(table)};
}

}  // namespace firelane::exporter

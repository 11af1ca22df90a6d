// Pickles written by hand: what is read, what is refused and where, and what hostile ones cost.
#include "import/pickle/unpickle.h"

#include <gtest/gtest.h>

#include "import/testing.h"

namespace firelane::importer {
namespace {

using std::string_literals::operator""s;

Result<Unpickled> read(const std::string& bytes, size_t piece = 4096) {
  const std::unique_ptr<ByteSource> source = open_memory(bytes);
  return unpickle(*source, "t.pickle", {.piece_bytes = piece, .free_bytes = uint64_t{1} << 20});
}

// As JSON would have it; None is null, a tuple has parentheses. Below `depth` levels only the size is said.
std::string text_of(const Document& d, Value value, int depth = 6) {
  switch (d.type(value)) {
    case ValueType::kNone: return "null";
    case ValueType::kTruth: return *d.truth(value) ? "true" : "false";
    case ValueType::kInteger: return d.integer(value) ? std::to_string(*d.integer(value)) : "huge";
    case ValueType::kReal: return std::to_string(*d.real(value));
    case ValueType::kText: return '"' + std::string(d.text(value)) + '"';
    default: break;
  }
  if (depth == 0) return "..." + std::to_string(d.size(value));
  std::string items;
  const auto add = [&](const std::string& item) { items += (items.empty() ? "" : ", ") + item; };
  d.each(value, [&](Value item) {
    add(text_of(d, item, depth - 1));
    return true;
  });
  d.each_pair(value, [&](Value key, Value item) {
    add(text_of(d, key, depth - 1) + ": " + text_of(d, item, depth - 1));
    return true;
  });
  if (d.type(value) == ValueType::kTuple) return "(" + items + ")";
  return d.type(value) == ValueType::kDict ? "{" + items + "}" : "[" + items + "]";
}

std::string value_of(const std::string& bytes, size_t piece = 4096) {
  const auto result = read(bytes, piece);
  if (!result.ok()) return "error: " + result.error().message;
  return text_of(result.value().document, result.value().document.root);
}

// pickle.dumps({"a": [1, 300, 70000, -1, 2**40, -2**40, 2**62, 2**70], "b": (1.5, None, True, False), "c": "ü",
//               "d": {}, "e": ((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4))}, protocol=4), with a reference to "a".
const std::string kAll =
    "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00}\x94("
    "\x8c\x01"
    "a\x94]\x94(K\x01M\x2c\x01J\x70\x11\x01\x00J\xff\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01"
    "\x8a\x06\x00\x00\x00\x00\x00\xff\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40"
    "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x40"
    "e"
    "X\x01\x00\x00\x00"
    "b(G\x3f\xf8\x00\x00\x00\x00\x00\x00N\x88\x89t\x94"
    "\x8c\x01"
    "c\x8c\x02\xc3\xbc"
    "\x8c\x01"
    "d}"
    "\x8c\x01"
    "e(K\x01\x85K\x01K\x02\x86K\x01K\x02K\x03\x87(K\x01K\x02K\x03K\x04tt"
    "\x8c\x01"
    "fh\x02uq\x09."s;
constexpr std::string_view kAllText =
    R"({"a": [1, 300, 70000, -1, 1099511627776, -1099511627776, 4611686018427387904, huge], "b": (1.500000, null, true, false), )"
    R"("c": "ü", "d": {}, "e": ((1), (1, 2), (1, 2, 3), (1, 2, 3, 4)), "f": [1, 300, 70000, -1, 1099511627776, -1099511627776, )"
    R"(4611686018427387904, huge]})";

TEST(Unpickle, plain_data_is_read) { EXPECT_EQ(value_of(kAll), kAllText); }

TEST(Unpickle, pieces_of_any_size_give_the_same) {
  for (size_t piece = 1; piece <= kAll.size() + 1; ++piece) EXPECT_EQ(value_of(kAll, piece), kAllText) << piece;
}

TEST(Unpickle, a_file_cut_anywhere_gives_what_was_there_or_says_where_it_ends) {
  size_t values = 0;
  for (size_t size = 0; size < kAll.size(); ++size) {
    const auto result = read(kAll.substr(0, size));
    if (!result.ok()) {
      EXPECT_NE(result.error().message.find("the pickle ends at byte "), std::string::npos) << result.error().message;
      continue;
    }
    ++values;
    EXPECT_TRUE(result.value().is_cut) << size;
    EXPECT_EQ(result.value().document.type(result.value().document.root), ValueType::kDict) << size;
  }
  EXPECT_GT(values, kAll.size() - 15);
  const auto half = read(kAll.substr(0, kAll.find('e')));
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(text_of(half.value().document, half.value().document.root),
            R"({"a": [1, 300, 70000, -1, 1099511627776, -1099511627776, 4611686018427387904, huge]})");
}

TEST(Unpickle, what_would_run_code_is_refused_with_its_place) {
  // cos\nsystem\n(S'true'\ntR.
  EXPECT_EQ(value_of("\x80\x02(cos\nsystem\n(U\x04truetR."s),
            "error: t.pickle: byte 3: refused: pickle opcode 0x63 (GLOBAL imports code); only numbers, texts, lists, "
            "tuples and dictionaries are read");
  EXPECT_EQ(value_of("\x80\x04\x8c\x02os\x8c\x06system\x93."s).substr(0, 73),
            "error: t.pickle: byte 14: refused: pickle opcode 0x93 (STACK_GLOBAL impor");
  size_t read_opcodes = 0;
  for (int opcode = 0; opcode < 256; ++opcode) {
    const std::string answer = value_of("\x80\x02}"s + static_cast<char>(opcode) + std::string(64, '\0') + ".");
    const bool refused = answer.find("byte 3: refused: pickle opcode") != std::string::npos;
    if (!refused) ++read_opcodes;
    const std::string_view dangerous = "ciobRPQ\x81\x82\x83\x84\x92\x93\x97";
    if (dangerous.find(static_cast<char>(opcode)) != std::string_view::npos) EXPECT_TRUE(refused) << opcode;
  }
  EXPECT_EQ(read_opcodes, 30u);
}

TEST(Unpickle, bad_structure_is_one_line_with_its_place) {
  for (const std::string& bad :
       {"\x80\x02."s, "\x80\x02}}."s, "\x80\x02(."s, "\x80\x02e."s, "\x80\x02u."s, "\x80\x02t."s,
        "\x80\x02K\x01K\x02"
        "a."s,
        "\x80\x02K\x01K\x02K\x03s."s, "\x80\x02}(K\x01u."s, "\x80\x02\x86."s, "\x80\x02K\x01\x86."s, "\x80\x02h\x07."s,
        "\x80\x02q\x00."s, "\x80\x02}r\xff\xff\xff\x7f."s, "\x80\x09}."s, "\x80\x02(K\x01(\x86tt."s,
        "\x80\x02X\xff\xff\xff\xff."s}) {
    const auto result = read(bad);
    ASSERT_FALSE(result.ok()) << bad;
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
    EXPECT_NE(result.error().message.find("t.pickle: byte "), std::string::npos) << result.error().message;
  }
}

TEST(Unpickle, a_list_may_hold_itself) {
  const auto result = read(
      "\x80\x02]q\x00(h\x00h\x00"
      "e."s);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(text_of(result.value().document, result.value().document.root, 2), "[[...2, ...2], [...2, ...2]]");
}

// Each list refers ten times to the one before: written out, 10^200 items.
TEST(Unpickle, a_billion_laughs_stays_as_small_as_its_file) {
  std::string bytes = "\x80\x02(K\x01"s;
  for (int i = 0; i < 200; ++i) {
    bytes += "](";
    for (int k = 0; k < 10; ++k) bytes += i == 0 ? "K\x07"s : "h"s + static_cast<char>(i - 1);
    bytes += "eq"s + static_cast<char>(i);
  }
  const auto result = read(bytes + "t.");
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_LT(result.value().document.memory_bytes(), uint64_t{1} << 20);
  EXPECT_EQ(result.value().document.size(result.value().document.root), 201u);
}

TEST(Unpickle, memory_is_bounded_by_what_was_read) {
  const auto flood = read("\x80\x02"s + std::string(size_t{1} << 20, 'N') + ".");  // 8 bytes for each of its own
  ASSERT_FALSE(flood.ok());
  EXPECT_NE(flood.error().message.find("takes more memory than a pickle of its size should"), std::string::npos);
  const auto claims = read("\x80\x02X\xff\xff\xff\x00"s);  // a text of 16 MiB that is not there
  ASSERT_FALSE(claims.ok());
}

TEST(Unpickle, dictionaries_with_the_same_keys_share_them_and_later_keys_win) {
  const auto result = read(
      "\x80\x02]("
      "}(X\x01\x00\x00\x00"
      "aK\x01X\x01\x00\x00\x00"
      "bK\x02u"
      "}(X\x01\x00\x00\x00"
      "aK\x03X\x01\x00\x00\x00"
      "bK\x04u"
      "}X\x01\x00\x00\x00"
      "aK\x05sX\x01\x00\x00\x00"
      "aK\x06s"
      "}K\x01K\x02s"
      "e."s);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Document& d = result.value().document;
  const Field a(d, "a"), b(d, "b"), c(d, "c");
  std::string seen;
  d.each(d.root, [&](Value row) {
    seen += text_of(d, a.of(row)) + text_of(d, b.of(row)) + text_of(d, c.of(row)) + " ";
    return true;
  });
  EXPECT_EQ(seen, "12null 34null 6nullnull nullnullnull ");
  EXPECT_TRUE(d.is_none(a.of(d.root)));
}

TEST(Document, lists_of_small_and_of_wide_items_read_back) {
  Document d;
  const Value list = d.new_list();
  const Value small[] = {d.of_integer(7), d.of_text("a"), d.new_list()};
  const Value wide[] = {d.of_integer(int64_t{1} << 40), d.of_integer(-1)};
  d.append(list, small);
  d.append(list, wide);
  EXPECT_EQ(text_of(d, list), "[7, \"a\", [], 1099511627776, -1]");
  EXPECT_EQ(d.size(list), 5u);
}

TEST(Document, lists_of_the_same_items_share_them_and_stay_apart_when_one_grows) {
  Document d;
  std::vector<Value> stack;
  for (int i = 0; i < 40; ++i) stack.push_back(d.of_integer(i * 7));
  const Value first = d.new_list(), second = d.new_list(), other = d.new_list();
  d.append(first, stack);
  d.append(second, stack);
  stack[20] = d.of_integer(1);
  d.append(other, stack);
  EXPECT_EQ(d.item_bytes(first).data(), d.item_bytes(second).data());
  EXPECT_NE(d.item_bytes(first), d.item_bytes(other));
  const Value more[] = {d.of_integer(5)};
  d.append(second, more);
  EXPECT_EQ(d.size(first), 40u);
  EXPECT_EQ(d.size(second), 41u);
  EXPECT_TRUE(text_of(d, second).ends_with(", 273, 5]")) << text_of(d, second);
  EXPECT_TRUE(text_of(d, first).ends_with(", 273]"));
}

TEST(Document, two_small_items_are_not_taken_for_a_wide_one_with_the_same_bytes) {
  Document d;
  const Value narrow[] = {d.of_integer(1), d.of_integer(2)};
  const Value wide[] = {{narrow[1].bits << 32 | narrow[0].bits}};
  const Value again[] = {narrow[0], narrow[1]};
  const Value lists[] = {d.new_list(), d.new_list(), d.new_list()};
  d.append(lists[0], narrow);
  d.append(lists[1], wide);
  d.append(lists[2], again);
  EXPECT_EQ(d.item_bytes(lists[0]), d.item_bytes(lists[2]));
  EXPECT_NE(d.item_bytes(lists[0]), d.item_bytes(lists[1]));
}

}  // namespace
}  // namespace firelane::importer

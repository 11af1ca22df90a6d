#include "import/pickle/unpickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "base/utf8.h"
#include "import/pickle/opcodes.h"
#include "import/pickle/unpickle_parts.h"

namespace firelane::importer {

namespace {

constexpr uint64_t kMostTextBytes = uint64_t{16} << 20;
// Memory for each byte of a file: a value takes 8, and what makes one takes 2 to 5 in what picklers write. The shortest
// instruction is a byte long.
constexpr uint64_t kBytesPerByte = 4;
constexpr uint64_t kStepsBetweenChecks = 4096;
constexpr uint64_t kMostPlacesAhead = 1024;  // of the memo
constexpr size_t kLongestFast = 10;          // bytes of an instruction, as far as the fast loop reads them

template <size_t count>
uint64_t little_endian(const char* bytes) {
  uint64_t number = 0;
  std::memcpy(&number, bytes, count);
  return number;
}
static_assert(std::endian::native == std::endian::little);

class Machine {
 public:
  Machine(ByteSource& source, const std::string& name, const UnpickleOptions& options)
      : input_(source, options.piece_bytes), free_bytes_(options.free_bytes), name_(name), document_(out_.document) {}

  Result<Unpickled> run() {
    do {
      run_fast();
    } while (step() && fits_into_memory());
    if (!error_.empty()) return Error{name_ + ": " + error_};
    if (out_.is_cut && !close_what_is_open())
      return Error{name_ + ": the pickle ends at byte " + std::to_string(input_.offset()) +
                   ", before anything of it is complete; copy the file again"};
    out_.bytes = input_.offset();
    return std::move(out_);
  }

 private:
  // False at the end, also of the file, and when something is wrong.
  bool step() {
    at_ = input_.offset();
    const char* const opcode = input_.take(1);
    if (opcode == nullptr) return cut();
    using enum PickleOpcode;
    switch (static_cast<PickleOpcode>(*opcode)) {
      case kProto: return skip_proto();
      case kFrame: return input_.take(8) != nullptr || cut();  // how many bytes follow: they are read anyway
      case kStop: return stop();
      case kMark: return mark();
      case kNone: return push(kNoneValue);
      case kNewTrue: return push(Document::of_truth(true));
      case kNewFalse: return push(Document::of_truth(false));
      case kBinInt1: return number<uint8_t>();
      case kBinInt2: return number<uint16_t>();
      case kBinInt: return number<int32_t>();
      case kLong1: return long_number();
      case kBinFloat: return real();
      case kShortBinUnicode: return text<1>();
      case kBinUnicode: return text<4>();
      case kEmptyList: return push(document_.new_list());
      case kEmptyDict: return push(document_.new_dict());
      case kEmptyTuple: return push(document_.new_tuple({}));
      case kTuple1: return tuple(1);
      case kTuple2: return tuple(2);
      case kTuple3: return tuple(3);
      case kTuple: return tuple_since_mark();
      case kAppend: return fill_container(1);
      case kAppends: return fill_since_mark();
      case kSetItem: return fill_container(2);
      case kSetItems: return fill_since_mark();
      case kMemoize: return memoize(memo_set_);
      case kBinPut: return put<1>();
      case kLongBinPut: return put<4>();
      case kBinGet: return get<1>();
      case kLongBinGet: return get<4>();
      default: return refuse(static_cast<uint8_t>(*opcode));
    }
  }

  // ---- the fast loop ---------------------------------------------------------------------

  // What nearly all of a snapshot consists of: references, small numbers, and the containers around them. As many
  // instructions as are at hand with all of their bytes; what is not known here, or not right, is left to step().
  void run_fast() {
    using enum PickleOpcode;
    stack_.make_room(kStepsBetweenChecks);
    const std::string_view rest = input_.rest();
    if (rest.size() < kLongestFast) return;
    const char* at = rest.data();
    const char* const last = at + rest.size() - kLongestFast;
    Value* const bottom = stack_.data();
    Value* top = bottom + stack_.size();
    const Value* memo = memo_.data();
    size_t memo_size = memo_.size();
    uint64_t left = kStepsBetweenChecks - 1 - steps_ % kStepsBetweenChecks;  // then step() looks at the memory
    const uint64_t begun_with = left;
    const auto is_above_mark = [&](size_t count) {
      return static_cast<size_t>(top - bottom) - (marks_.empty() ? 0 : marks_.back()) >= count;
    };
    for (; left > 0 && at <= last; --left) {
      switch (static_cast<PickleOpcode>(*at)) {
        case kLongBinGet: {
          const uint64_t place = little_endian<4>(at + 1);
          if (place >= memo_size || memo[place] == kEmptyPlace) break;
          *top++ = memo[place];
          at += 5;
          continue;
        }
        case kBinGet: {
          const auto place = static_cast<uint8_t>(at[1]);
          if (place >= memo_size || memo[place] == kEmptyPlace) break;
          *top++ = memo[place];
          at += 2;
          continue;
        }
        case kBinInt1: *top++ = Document::of_small(static_cast<uint8_t>(at[1])), at += 2; continue;
        case kBinInt2: *top++ = Document::of_small(static_cast<uint16_t>(little_endian<2>(at + 1))), at += 3; continue;
        case kBinInt: *top++ = Document::of_small(static_cast<int32_t>(little_endian<4>(at + 1))), at += 5; continue;
        case kLong1: {
          const auto bytes = static_cast<uint8_t>(at[1]);
          if (bytes == 0 || bytes >= 8) break;
          const int shift = 64 - 8 * bytes;
          *top++ = Document::of_small(static_cast<int64_t>(little_endian<8>(at + 2) << shift) >> shift);
          at += 2 + bytes;
          continue;
        }
        case kNone: *top++ = kNoneValue, ++at; continue;
        case kNewTrue: *top++ = Document::of_truth(true), ++at; continue;
        case kNewFalse: *top++ = Document::of_truth(false), ++at; continue;
        case kEmptyList: *top++ = document_.new_list(), ++at; continue;
        case kEmptyDict: *top++ = document_.new_dict(), ++at; continue;
        case kMark: marks_.push_back(static_cast<size_t>(top - bottom)), ++at; continue;
        case kMemoize:
          if (memo_set_ != memo_size || !is_above_mark(1)) break;
          memo_.push_back(top[-1]);
          memo = memo_.data();
          memo_size = ++memo_set_;
          ++at;
          continue;
        case kFrame: at += 9; continue;
        case kAppends:
        case kSetItems: {
          if (marks_.empty()) break;
          Value* const items = bottom + marks_.back();
          const size_t below = marks_.size() < 2 ? 0 : marks_[marks_.size() - 2];
          if (static_cast<size_t>(items - bottom) <= below) break;
          const ValueType kind = document_.type(items[-1]);
          const std::span<const Value> found(items, top);
          if (kind == ValueType::kList) {
            document_.append(items[-1], found);
          } else if (kind == ValueType::kDict && found.size() % 2 == 0) {
            document_.set_items(items[-1], found);
          } else {
            break;
          }
          marks_.pop_back();
          top = items;
          ++at;
          continue;
        }
        default: break;
      }
      break;
    }
    steps_ += begun_with - left;
    stack_.drop_to(static_cast<size_t>(top - bottom));
    input_.skip(static_cast<size_t>(at - rest.data()));
  }

  // ---- values ----------------------------------------------------------------------------

  bool push(Value value) {
    stack_.push(value);
    return true;
  }

  bool mark() {
    marks_.push_back(stack_.size());
    return true;
  }

  template <typename Number>
  bool number() {
    const char* const at = input_.take(sizeof(Number));
    return at == nullptr ? cut() : push(document_.of_integer(static_cast<Number>(little_endian<sizeof(Number)>(at))));
  }

  // Two's complement, as short as it can be.
  bool long_number() {
    const char* const length = input_.take(1);
    if (length == nullptr) return cut();
    const auto bytes = static_cast<uint8_t>(*length);
    const char* const at = input_.take(bytes);
    if (at == nullptr) return cut();
    if (bytes == 0) return push(document_.of_integer(0));
    if (bytes > 8) return push(document_.of_huge_integer());
    uint64_t number = 0;
    std::memcpy(&number, at, bytes);
    const int shift = 64 - 8 * bytes;
    return push(document_.of_integer(static_cast<int64_t>(number << shift) >> shift));
  }

  bool real() {
    const char* const at = input_.take(8);
    if (at == nullptr) return cut();
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; ++i) bits = bits << 8 | static_cast<uint8_t>(at[i]);
    return push(document_.of_real(std::bit_cast<double>(bits)));
  }

  template <size_t length_bytes>
  bool text() {
    const char* const length = input_.take(length_bytes);
    if (length == nullptr) return cut();
    const uint64_t bytes = little_endian<length_bytes>(length);
    if (bytes > kMostTextBytes) return fail("a text of " + std::to_string(bytes) + " bytes");
    const char* const at = input_.take(bytes);
    if (at == nullptr) return cut();
    const std::string_view found(at, bytes);
    const bool is_ascii = std::all_of(found.begin(), found.end(), [](char c) { return c >= 0; });
    if (is_ascii) return push(document_.of_text(found));
    std::string valid;  // Python writes file names that are no UTF-8 as lone surrogates
    append_valid_utf8(valid, found);
    return push(document_.of_text(valid));
  }

  // ---- containers ------------------------------------------------------------------------

  bool tuple(size_t count) {
    if (available() < count) return fail("a tuple longer than the stack");
    const Value made = document_.new_tuple(stack_.last(count));
    stack_.drop_to(stack_.size() - count);
    return push(made);
  }

  bool tuple_since_mark() {
    if (marks_.empty()) return fail("a tuple without its mark");
    const size_t begin = marks_.back();
    marks_.pop_back();
    return tuple(stack_.size() - begin);
  }

  // The `count` values on top go into the list or dictionary below them.
  bool fill_container(size_t count) {
    if (available() <= count) return fail("items without the container that they belong to");
    const std::span<const Value> items = stack_.last(count);
    const Value into = stack_[stack_.size() - count - 1];
    const ValueType kind = document_.type(into);
    if (kind == ValueType::kList) {
      document_.append(into, items);
    } else if (kind != ValueType::kDict) {
      return fail("items for a value that is neither list nor dict");
    } else if (count % 2 != 0) {
      return fail("a key without its value");
    } else {
      document_.set_items(into, items);
    }
    stack_.drop_to(stack_.size() - count);
    return true;
  }

  bool fill_since_mark() {
    if (marks_.empty()) return fail("items without their mark");
    const size_t begin = marks_.back();
    marks_.pop_back();
    return fill_container(stack_.size() - begin);
  }

  // What is on the stack above the last mark belongs to what is being built.
  size_t available() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

  // ---- the memo --------------------------------------------------------------------------

  template <size_t bytes>
  bool put() {
    const char* const at = input_.take(bytes);
    return at == nullptr ? cut() : memoize(little_endian<bytes>(at));
  }

  // Picklers number what they keep one after another: a place far beyond is no pickle's.
  bool memoize(uint64_t place) {
    if (available() == 0) return fail("nothing to keep");
    if (place > memo_set_ + kMostPlacesAhead) return fail("kept in place " + std::to_string(place));
    if (place == memo_.size()) {
      memo_.push_back(stack_.back());
      ++memo_set_;
      return true;
    }
    if (place > memo_.size()) memo_.resize(place + 1, kEmptyPlace);
    if (memo_[place] == kEmptyPlace) ++memo_set_;
    memo_[place] = stack_.back();
    return true;
  }

  template <size_t bytes>
  bool get() {
    const char* const at = input_.take(bytes);
    if (at == nullptr) return cut();
    const uint64_t place = little_endian<bytes>(at);
    if (place >= memo_.size() || memo_[place] == kEmptyPlace)
      return fail("asks for place " + std::to_string(place) + ", where nothing is kept");
    return push(memo_[place]);
  }

  // ---- the end ---------------------------------------------------------------------------

  bool skip_proto() {
    const char* const version = input_.take(1);
    if (version == nullptr) return cut();
    const auto number = static_cast<uint8_t>(*version);
    return number >= 2 && number <= 5 ? true : fail("protocol " + std::to_string(number) + "; 2 to 5 are read");
  }

  bool stop() {
    if (stack_.size() != 1 || !marks_.empty()) return fail("ends with more or less than one value");
    document_.root = stack_.back();
    out_.has_trailing = input_.has_more();
    return false;
  }

  bool cut() {
    out_.is_cut = true;
    return false;
  }

  // For a file that ended in the middle: what was read for a container goes into it, the innermost first.
  bool close_what_is_open() {
    while (!marks_.empty()) {
      const size_t begin = marks_.back();
      marks_.pop_back();
      size_t count = stack_.size() - begin;
      if (begin == 0 || begin - (marks_.empty() ? 0 : marks_.back()) == 0) {
        stack_.drop_to(begin);
        continue;
      }
      if (document_.type(stack_[begin - 1]) == ValueType::kDict && count % 2 != 0) {
        stack_.drop_to(stack_.size() - 1);
        --count;
      }
      const ValueType kind = document_.type(stack_[begin - 1]);
      const bool is_open = kind == ValueType::kList || kind == ValueType::kDict;
      if (!is_open || !fill_container(count)) stack_.drop_to(begin);
    }
    error_.clear();
    if (stack_.empty()) return false;
    document_.root = stack_.front();
    return true;
  }

  bool fail(const std::string& what) {
    error_ = "byte " + std::to_string(at_) + ": " + what + "; the pickle is damaged or malicious";
    return false;
  }

  bool refuse(uint8_t opcode) {
    const auto known = std::find_if(std::begin(kRefusedOpcodes), std::end(kRefusedOpcodes),
                                    [&](const RefusedOpcode& r) { return r.opcode == opcode; });
    constexpr std::string_view kDigits = "0123456789abcdef";
    const std::string hex = {'0', 'x', kDigits[opcode >> 4], kDigits[opcode & 15]};
    error_ = "byte " + std::to_string(at_) + ": refused: pickle opcode " + hex +
             (known == std::end(kRefusedOpcodes) ? " is not one that plain data needs"
                                                 : " (" + std::string(known->what) + ")") +
             "; only numbers, texts, lists, tuples and dictionaries are read";
    return false;
  }

  bool fits_into_memory() {
    if (++steps_ % kStepsBetweenChecks != 0) return true;
    const uint64_t used =
        document_.memory_bytes() + (stack_.capacity() + memo_.capacity() + marks_.capacity()) * sizeof(Value);
    return used <= free_bytes_ + kBytesPerByte * input_.offset() ||
           fail("takes more memory than a pickle of its size should");
  }

  static constexpr Value kEmptyPlace{UINT64_MAX};

  PickleInput input_;
  uint64_t free_bytes_;
  const std::string& name_;
  Unpickled out_;
  Document& document_;
  PickleStack stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::vector<Value> memo_;
  uint64_t memo_set_ = 0;
  uint64_t steps_ = 0;
  uint64_t at_ = 0;  // of the opcode
  std::string error_;
};

}  // namespace

bool is_pickle(std::string_view begin) {
  return begin.size() >= 2 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5;
}

Result<Unpickled> unpickle(ByteSource& source, const std::string& name, const UnpickleOptions& options) {
  return Machine(source, name, options).run();
}

}  // namespace firelane::importer

// The instructions of Python's pickles that are understood, and those that are refused by name.
#pragma once

#include <cstdint>
#include <string_view>

namespace firelane::importer {

// All that is understood. What Python's and torch's picklers write for plain data, and nothing that makes objects.
enum class PickleOpcode : uint8_t {
  kMark = '(',
  kEmptyTuple = ')',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// Names, for messages, of the refused opcodes that a file is likely to have.
struct RefusedOpcode {
  uint8_t opcode;
  std::string_view what;
};
inline constexpr RefusedOpcode kRefusedOpcodes[] = {
    {'c', "GLOBAL imports code"},
    {'i', "INST calls code"},
    {'o', "OBJ calls code"},
    {'R', "REDUCE calls code"},
    {'b', "BUILD changes an object"},
    {'P', "PERSID asks the loader for an object"},
    {'Q', "BINPERSID asks the loader for an object"},
    {0x81, "NEWOBJ makes an object"},
    {0x82, "EXT1 imports code"},
    {0x83, "EXT2 imports code"},
    {0x84, "EXT4 imports code"},
    {0x92, "NEWOBJ_EX makes an object"},
    {0x93, "STACK_GLOBAL imports code"},
    {0x97, "NEXT_BUFFER asks the loader for a buffer"},
};

}  // namespace firelane::importer

#include "live/layout.h"

namespace firelane::live {

namespace {

constexpr Layout k310 = {.main_interpreter = 40,
                         .first_thread = 8,
                         .thread_bytes = 192,
                         .next_thread = 8,
                         .pthread = 176,
                         .native_id = 0,
                         .frame = 24,
                         .has_cframe = false,
                         .cframe_frame = 0,
                         .frame_bytes = 104,
                         .code = 32,
                         .previous = 24,
                         .instruction = 96,
                         .is_index = true,
                         .is_entry = 0,
                         .owner = 0,
                         .owned_by_c = 0,
                         .code_bytes = 136,
                         .flags = 36,
                         .file_name = 104,
                         .name = 112,
                         .first_line = 40,
                         .line_table = 120,
                         .instructions = 0,
                         .has_location_table = false,
                         .ascii_bytes = 48,
                         .compact_bytes = 72,
                         .gil = 0,
                         .gil_is_pointer = false,
                         .gil_holder = 360};

constexpr Layout k311 = {.main_interpreter = 48,
                         .first_thread = 16,
                         .thread_bytes = 176,
                         .next_thread = 8,
                         .pthread = 152,
                         .native_id = 160,
                         .frame = 56,
                         .has_cframe = true,
                         .cframe_frame = 8,
                         .frame_bytes = 72,
                         .code = 32,
                         .previous = 48,
                         .instruction = 56,
                         .is_index = false,
                         .is_entry = 68,
                         .owner = 0,
                         .owned_by_c = 0,
                         .code_bytes = 184,
                         .flags = 48,
                         .file_name = 112,
                         .name = 128,
                         .first_line = 72,
                         .line_table = 136,
                         .instructions = 184,
                         .has_location_table = true,
                         .ascii_bytes = 48,
                         .compact_bytes = 72,
                         .gil = 0,
                         .gil_is_pointer = false,
                         .gil_holder = 368};

constexpr Layout k312 = {.main_interpreter = 48,
                         .first_thread = 72,
                         .thread_bytes = 160,
                         .next_thread = 8,
                         .pthread = 136,
                         .native_id = 144,
                         .frame = 56,
                         .has_cframe = true,
                         .cframe_frame = 0,
                         .frame_bytes = 72,
                         .code = 0,
                         .previous = 8,
                         .instruction = 56,
                         .is_index = false,
                         .is_entry = 0,
                         .owner = 70,
                         .owned_by_c = 3,
                         .code_bytes = 192,
                         .flags = 48,
                         .file_name = 112,
                         .name = 128,
                         .first_line = 68,
                         .line_table = 136,
                         .instructions = 192,
                         .has_location_table = true,
                         .ascii_bytes = 40,
                         .compact_bytes = 56,
                         .gil = 384,
                         .gil_is_pointer = true,
                         .gil_holder = 8};

constexpr Layout k313 = {.main_interpreter = 640,
                         .first_thread = 7344,
                         .thread_bytes = 176,
                         .next_thread = 8,
                         .pthread = 152,
                         .native_id = 160,
                         .frame = 72,
                         .has_cframe = false,
                         .cframe_frame = 0,
                         .frame_bytes = 72,
                         .code = 0,
                         .previous = 8,
                         .instruction = 56,
                         .is_index = false,
                         .is_entry = 0,
                         .owner = 70,
                         .owned_by_c = 3,
                         .code_bytes = 200,
                         .flags = 48,
                         .file_name = 112,
                         .name = 128,
                         .first_line = 68,
                         .line_table = 136,
                         .instructions = 200,
                         .has_location_table = true,
                         .ascii_bytes = 40,
                         .compact_bytes = 56,
                         .gil = 16,
                         .gil_is_pointer = true,
                         .gil_holder = 8};

}  // namespace

const Layout* layout_of(const PythonVersion& version) {
  if (version.is_free_threaded) return nullptr;
  switch (version.minor) {
    case 10: return &k310;
    case 11: return &k311;
    case 12: return &k312;
    case 13: return &k313;
    default: return nullptr;
  }
}

}  // namespace firelane::live

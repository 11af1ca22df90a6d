// The built page of viewer/, inside of the program. tools/cmake/FirelaneViewer.cmake writes pages.cc.
#pragma once

#include <span>
#include <string_view>

namespace firelane::serve {

struct Page {
  std::string_view name;  // "index.html", "assets/index-3f2a.js"
  std::string_view type;  // of HTTP
  std::string_view bytes;
};

// Empty when the program was built without the viewer.
std::span<const Page> all_pages();

inline const Page* find_page(std::string_view name) {
  for (const Page& page : all_pages()) {
    if (page.name == name) return &page;
  }
  return nullptr;
}

}  // namespace firelane::serve

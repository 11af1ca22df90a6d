// /api/t/T/light: whether times of this trace are those of its light steps, whose timeline comes first. Asked when a
// trace is opened and not for the list of traces: to tell whether light steps are good enough, they are studied.
#include <string>

#include "advise/light_note.h"
#include "serve/handlers.h"

namespace firelane::serve {

Answer light(const ServedTrace& trace, const Request&) {
  const std::string note = advise::light_note(trace.studied());
  JsonWriter json;
  json.begin_object().key("note");
  if (note.empty()) {
    json.null();
  } else {
    json.value(note);
  }
  json.end_object();
  return json_answer(std::move(json));
}

}  // namespace firelane::serve

// One table of the model as an SQLite virtual table.
#pragma once

#include <sqlite3.h>

#include "model/catalog.h"
#include "model/model.h"

namespace firelane::sql {

// Makes `table` known to the connection under its own name. Returns an SQLite result code.
// REQUIRES: model and table outlive the connection.
int create_virtual_table(sqlite3* connection, const Model& model, const CatalogTable& table);

}  // namespace firelane::sql

// The model's tables as Arrow tables, under the names and columns of model/tables.h.
//
// Integer columns are the model's own vectors; names, categories and other texts are indices
// into one dictionary, the model's strings, built on the first table that is asked for.
// Kinds are dictionaries of their words. kNoRow, kNoNumber and -1 for "not in the trace" are
// nulls. Only what a struct of two fields holds is copied: lanes' ids and flows' ends. Each
// table begins with `id`, the row number that other tables' columns speak of.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "export/arrow.h"
#include "model/model.h"

namespace firelane::exporter {

struct ArrowTableInfo {
  std::string name;
  std::string meaning;  // a sentence
};
// The tables of the model, and losses.
const std::vector<ArrowTableInfo>& arrow_table_list();

class ArrowTables {
 public:
  explicit ArrowTables(std::shared_ptr<const Model> model)
      : model_(std::move(model)), tables_(arrow_table_list().size()) {}

  // Built on first use; thread-safe. REQUIRES: `index` is one of arrow_table_list().
  std::shared_ptr<const ArrowTable> table(size_t index);
  // Of any table that is declared as those of the model are. REQUIRES: nobody else asks at the same time.
  std::shared_ptr<const ArrowTable> made_of(const TableInfo& table);

 private:
  void build_shared();

  std::shared_ptr<const Model> model_;
  std::mutex mutex_;
  std::shared_ptr<const ArrowTexts> strings_;        // the model's, by StringId
  std::shared_ptr<const std::vector<Row>> row_ids_;  // 0, 1, 2, ... for the longest table
  std::vector<std::shared_ptr<const ArrowTable>> tables_;
};

}  // namespace firelane::exporter

#include "import/sqlite/source_vfs.h"

#include <sqlite3.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

namespace firelane::importer {

namespace {

struct SourceVfs {
  sqlite3_vfs vfs{};
  std::string name;
  std::shared_ptr<const ByteSource> source;
  sqlite3_int64 bytes = 0;
};

struct SourceFile {
  sqlite3_file base;  // first: SQLite sees only this
  const SourceVfs* vfs;
};

int close_file(sqlite3_file*) { return SQLITE_OK; }

int read_file(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  const SourceVfs& vfs = *reinterpret_cast<SourceFile*>(file)->vfs;
  const auto wanted = static_cast<size_t>(amount);
  const auto got = vfs.source->read_at(static_cast<uint64_t>(offset), static_cast<char*>(out), wanted);
  if (!got.ok()) return SQLITE_IOERR_READ;
  if (got.value() == wanted) return SQLITE_OK;
  std::memset(static_cast<char*>(out) + got.value(), 0, wanted - got.value());
  return SQLITE_IOERR_SHORT_READ;
}

int write_file(sqlite3_file*, const void*, int, sqlite3_int64) { return SQLITE_READONLY; }
int truncate_file(sqlite3_file*, sqlite3_int64) { return SQLITE_READONLY; }
int sync_file(sqlite3_file*, int) { return SQLITE_OK; }
int file_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = reinterpret_cast<SourceFile*>(file)->vfs->bytes;
  return SQLITE_OK;
}
int lock_file(sqlite3_file*, int) { return SQLITE_OK; }
int check_lock(sqlite3_file*, int* is_reserved) {
  *is_reserved = 0;
  return SQLITE_OK;
}
int file_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return 4096; }
int characteristics(sqlite3_file*) { return SQLITE_IOCAP_IMMUTABLE; }

const sqlite3_io_methods kMethods = {
    .iVersion = 1,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = lock_file,
    .xCheckReservedLock = check_lock,
    .xFileControl = file_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
};

int open_source(sqlite3_vfs* vfs, sqlite3_filename, sqlite3_file* file, int flags, int* out_flags) {
  auto* const opened = reinterpret_cast<SourceFile*>(file);
  opened->base.pMethods = nullptr;
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return SQLITE_CANTOPEN;  // no journal, no temporary files
  opened->base.pMethods = &kMethods;
  opened->vfs = static_cast<const SourceVfs*>(vfs->pAppData);
  if (out_flags != nullptr) *out_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
  return SQLITE_OK;
}

int delete_file(sqlite3_vfs*, const char*, int) { return SQLITE_READONLY; }
int access_file(sqlite3_vfs*, const char*, int, int* answer) {
  *answer = 0;
  return SQLITE_OK;
}
int full_path(sqlite3_vfs*, const char* path, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", path);
  return SQLITE_OK;
}
int randomness(sqlite3_vfs*, int bytes, char* out) {
  std::memset(out, 0, static_cast<size_t>(bytes));
  return bytes;
}
int sleep_for(sqlite3_vfs*, int) { return 0; }
int current_time(sqlite3_vfs*, double* out) {
  *out = 0;
  return SQLITE_OK;
}
int last_error(sqlite3_vfs*, int, char*) { return 0; }

std::mutex registry_mutex;
std::map<std::string, std::unique_ptr<SourceVfs>>& registry() {
  static std::map<std::string, std::unique_ptr<SourceVfs>> all;
  return all;
}

}  // namespace

std::string register_source(std::shared_ptr<const ByteSource> source, uint64_t bytes) {
  static std::atomic<uint64_t> next{0};
  auto made = std::make_unique<SourceVfs>();
  made->name = "firelane-source-" + std::to_string(next++);
  made->source = std::move(source);
  made->bytes = static_cast<sqlite3_int64>(bytes);
  sqlite3_vfs& vfs = made->vfs;
  vfs.iVersion = 1;
  vfs.szOsFile = sizeof(SourceFile);
  vfs.mxPathname = 64;
  vfs.zName = made->name.c_str();
  vfs.pAppData = made.get();
  vfs.xOpen = open_source;
  vfs.xDelete = delete_file;
  vfs.xAccess = access_file;
  vfs.xFullPathname = full_path;
  vfs.xRandomness = randomness;
  vfs.xSleep = sleep_for;
  vfs.xCurrentTime = current_time;
  vfs.xGetLastError = last_error;
  const std::string name = made->name;
  const std::lock_guard lock(registry_mutex);
  sqlite3_vfs_register(&vfs, 0);
  registry()[name] = std::move(made);
  return name;
}

void unregister_source(const std::string& vfs_name) {
  const std::lock_guard lock(registry_mutex);
  const auto found = registry().find(vfs_name);
  if (found == registry().end()) return;
  sqlite3_vfs_unregister(&found->second->vfs);
  registry().erase(found);
}

}  // namespace firelane::importer

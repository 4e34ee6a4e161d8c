// SPDX-License-Identifier: Apache-2.0
//
// mongodb: datasets are collections and objects are documents, {_id: name, size, data} (Kunkel & Markomanolis 2018,
// section 3).
#include "input/error.hpp"
#include "real/backend.hpp"

#ifdef IOCAST_HAS_LIBRARY
#include "real/transfer_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <mongoc/mongoc.h>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace iocast {
namespace {

const std::vector<Parameter> parameters{
    {"uri", Unit::text, "",
     "connection string without user and password, as mongodb://host:27017; see uri_file for one with them"},
    {"uri_file", Unit::text, "",
     "file with a connection string; without it and --mongodb.uri that of the environment variable MONGODB_URI"},
    {"database", Unit::text, "iocast", "database for the collections; it is empty, or is made and removed"}};

#ifdef IOCAST_HAS_LIBRARY

/// The library puts counters for other programs into shared memory as soon as it is loaded. A process that is killed
/// would leave them on its node, where a later process of the same number trips over them; their name is not needed.
[[maybe_unused]] const int counters = shm_unlink(fmt::format("/mongoc-{}", getpid()).c_str());

constexpr uint64_t largest_data = (uint64_t{16} << 20) - 1024; ///< a document has at most 16 MiB

template <auto free> struct Freed {
  template <class T> void operator()(T* pointer) const { free(pointer); }
};
using Collection = std::unique_ptr<mongoc_collection_t, Freed<mongoc_collection_destroy>>;
using Database   = std::unique_ptr<mongoc_database_t, Freed<mongoc_database_destroy>>;
using Cursors    = std::unique_ptr<mongoc_cursor_t, Freed<mongoc_cursor_destroy>>;

/// bson_t is aligned, which no template argument can be: std::unique_ptr warns.
class Document {
public:
  explicit Document(bson_t* document) : document_(document) {}
  Document(const Document&) = delete;
  ~Document()
  {
    if (document_)
      bson_destroy(document_);
  }
  bson_t* get() const { return document_; }

private:
  bson_t* document_;
};

class MongoDb final : public Backend {
public:
  MongoDb(const Parameters& given, const Client& client) : memory_(client), database_name_(given.text("database"))
  {
    std::string uri = given.text("uri");
    if (uri.find('@') != uri.npos)
      throw InputError(
          "--mongodb.uri takes no user and password: others could read them in the list of processes; write the "
          "connection string into a file and name it with --mongodb.uri_file.");
    if (const auto file = given.text("uri_file"); !file.empty()) {
      std::ifstream in(file);
      if (!std::getline(in, uri))
        throw InputError(fmt::format("The file '{}' of --mongodb.uri_file can't be read or is empty.", file));
    }
    if (const char* from = std::getenv("MONGODB_URI"); uri.empty() && from)
      uri = from;
    if (std::count(uri.begin(), uri.end(), '@') >
        1) // what comes after the first would be taken for a host, and be named in messages
      throw InputError("The connection string for MongoDB has more than one '@'; special characters of user and "
                       "password are written as %XX, this one as %40.");
    if (uri.empty())
      throw InputError("The backend needs a server: name it with --mongodb.uri mongodb://HOST:PORT.");
    static const bool once = (mongoc_init(), mongoc_log_set_handler(nullptr, nullptr), true);
    static_cast<void>(once);
    bson_error_t error{};
    const std::unique_ptr<mongoc_uri_t, Freed<mongoc_uri_destroy>> parsed(
        mongoc_uri_new_with_error(uri.c_str(), &error));
    if (!parsed)
      throw InputError("The connection string for MongoDB can't be understood; it has the form "
                       "mongodb://USER:PASSWORD@HOST:PORT/?OPTION=VALUE, "
                       "with special characters of user and password as %XX.");
    hosts_ = mongoc_uri_get_hosts(parsed.get()) ? mongoc_uri_get_hosts(parsed.get())->host_and_port : "";
    mongoc_uri_set_option_as_utf8(parsed.get(), MONGOC_URI_APPNAME, "iocast");
    client_.reset(mongoc_client_new_from_uri(parsed.get()));
    if (client_)
      mongoc_client_set_error_api(client_.get(), MONGOC_ERROR_API_VERSION_2);
  }

  void connect() override
  {
    // A question that a user without rights gets no answer to, as a ping does.
    const Document ask(BCON_NEW("listCollections", BCON_INT32(1), "nameOnly", BCON_BOOL(true)));
    bson_t reply;
    const bool good = client_ && mongoc_client_command_simple(client_.get(), database_name_.c_str(), ask.get(), nullptr,
                                                              &reply, &error_);
    if (client_)
      bson_destroy(&reply);
    if (!good && (error_.code == MONGOC_ERROR_CLIENT_AUTHENTICATE || failed() == EACCES))
      throw InputError(fmt::format("The MongoDB server at {} does not let this user work in the database '{}': {}. "
                                   "User and password are those of the connection "
                                   "string in MONGODB_URI or --mongodb.uri_file, as mongodb://USER:PASSWORD@HOST:PORT.",
                                   hosts_, database_name_, last_message()));
    if (!good)
      throw InputError(fmt::format("The MongoDB server at {} can't be used: {}.", hosts_, last_message()));
    database_.reset(mongoc_client_get_database(client_.get(), database_name_.c_str()));
  }

  bool prepares_calls() const override { return true; }

  void prepare_call(const Name& name, const Op& op) override
  {
    prepared_.reset();
    if (*name.object() == '\0')
      return;
    if (op.kind == OpKind::create && op.size <= largest_data)
      prepared_.emplace(collection(name), whole_object(name, op.size), nullptr);
    else if (op.kind == OpKind::stat || op.kind == OpKind::read)
      prepared_.emplace(collection(name), key_of(name), one_field(op.kind == OpKind::stat ? "size" : "data"));
    else if (op.kind == OpKind::unlink)
      prepared_.emplace(collection(name), key_of(name), nullptr);
  }

  int mkdir(const Name& name) override
  {
    const Collection made(mongoc_database_create_collection(database_.get(), name.dataset(), nullptr, &error_));
    return made ? 0 : failed();
  }

  int create(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    watch.lap(); // nothing is opened
    if (size > largest_data)
      return EFBIG;
    if (!prepared_)
      prepared_.emplace(collection(name), whole_object(name, size), nullptr);
    const bool good =
        mongoc_collection_insert_one(prepared_->of.get(), prepared_->document.get(), nullptr, nullptr, &error_);
    if (good) {
      watch.lap();
      watch.lap(); // nor closed
    }
    prepared_.reset();
    return good ? 0 : failed();
  }

  int stat(const Name& name, uint64_t& size) override
  {
    if (*name.object() == '\0')
      return stat_collection(name);
    return find(name, "size",
                [&](const bson_iter_t& found) { size = static_cast<uint64_t>(bson_iter_as_int64(&found)); });
  }

  int read(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    watch.lap();
    uint32_t got    = 0;
    const int error = find(name, "data", [&](const bson_iter_t& found) {
      const uint8_t* data = nullptr;
      bson_iter_binary(&found, nullptr, &got, &data);
      memory_.reserve(got);
      std::memcpy(memory_.received(), data, got);
    });
    if (error != 0 || got < size)
      return error != 0 ? error : short_transfer;
    watch.lap();
    watch.lap();
    return 0;
  }

  int unlink(const Name& name) override
  {
    bson_t reply;
    if (!prepared_)
      prepared_.emplace(collection(name), key_of(name), nullptr);
    const bool good =
        mongoc_collection_delete_one(prepared_->of.get(), prepared_->document.get(), nullptr, &reply, &error_);
    prepared_.reset();
    bson_iter_t at;
    const bool deleted = good && bson_iter_init_find(&at, &reply, "deletedCount") && bson_iter_as_int64(&at) == 1;
    bson_destroy(&reply);
    return !good ? failed() : deleted ? 0 : ENOENT;
  }

  /// As rmdir(2): not when something is in it.
  int rmdir(const Name& name) override
  {
    uint64_t entries = 0;
    if (const int error = readdir(name, entries, 1); error != 0 || entries > 0)
      return error != 0 ? error : ENOTEMPTY;
    return mongoc_collection_drop(collection(name).get(), &error_) ? 0 : failed();
  }

  bool serves(OpKind kind) const override { return Backend::serves(kind) || kind == OpKind::readdir; }
  int readdir(const Name& name, uint64_t& entries) override { return readdir(name, entries, 0); }

  void prepare(Slot, const Op& op) override { memory_.prepare(op, op.size); }
  void reserve(uint64_t bytes) override { memory_.reserve(bytes); }
  const char* fetched() const override { return memory_.received(); }

  bool keeps_data() const override { return true; }
  std::string place() const override { return fmt::format("The database '{}' at {}", database_name_, hosts_); }

  bool empty() override
  {
    char** names = mongoc_database_get_collection_names_with_opts(database_.get(), nullptr, &error_);
    if (!names)
      throw RunError(fmt::format("{} can't be listed: {}.", place(), last_message()));
    bool found = false;
    for (char** name = names; *name; ++name)
      found = found || (std::string_view(*name) != manifest_name && std::string_view(*name) != claim_name);
    bson_strfreev(names);
    return !found;
  }

  std::string read_manifest() override
  {
    std::string text;
    const Document all(bson_new());
    const Collection of(mongoc_client_get_collection(client_.get(), database_name_.c_str(), manifest_name));
    const Cursors cursor(mongoc_collection_find_with_opts(of.get(), all.get(), nullptr, nullptr));
    for (const bson_t* found = nullptr; mongoc_cursor_next(cursor.get(), &found);)
      if (bson_iter_t at; bson_iter_init_find(&at, found, "content"))
        text = bson_iter_utf8(&at, nullptr);
    if (mongoc_cursor_error(cursor.get(), &error_))
      throw RunError(fmt::format("{} can't be read: {}.", place(), last_message()));
    return text;
  }

  void write_manifest(const std::string& text) override
  {
    const Document which(BCON_NEW("_id", BCON_UTF8("manifest")));
    const Document whole(BCON_NEW("_id", BCON_UTF8("manifest"), "content", BCON_UTF8(text.c_str())));
    const Document or_insert(BCON_NEW("upsert", BCON_BOOL(true)));
    const Collection of(mongoc_client_get_collection(client_.get(), database_name_.c_str(), manifest_name));
    if (!mongoc_collection_replace_one(of.get(), which.get(), whole.get(), or_insert.get(), nullptr, &error_))
      throw RunError(fmt::format("{} can't be written to: {}.", place(), last_message()));
  }

  void remove_manifest() override
  {
    const Collection of(mongoc_client_get_collection(client_.get(), database_name_.c_str(), manifest_name));
    if (!mongoc_collection_drop(of.get(), &error_) && failed() != ENOENT)
      throw RunError(fmt::format("The manifest in {} can't be removed: {}.", place(), last_message()));
  }

  std::optional<std::string> read_claim() override
  {
    std::optional<std::string> text;
    const Document all(bson_new());
    const auto of = collection(claim_name);
    const Cursors cursor(mongoc_collection_find_with_opts(of.get(), all.get(), nullptr, nullptr));
    for (const bson_t* found = nullptr; mongoc_cursor_next(cursor.get(), &found);)
      if (bson_iter_t at; bson_iter_init_find(&at, found, "content") && BSON_ITER_HOLDS_UTF8(&at))
        text = bson_iter_utf8(&at, nullptr);
    if (mongoc_cursor_error(cursor.get(), &error_))
      throw RunError(fmt::format("{} can't be read: {}.", place(), last_message()));
    return text;
  }

  bool make_claim(const std::string& text) override
  {
    const Document claim(BCON_NEW("_id", BCON_UTF8("claim"), "content", BCON_UTF8(text.c_str())));
    if (mongoc_collection_insert_one(collection(claim_name).get(), claim.get(), nullptr, nullptr, &error_))
      return true;
    if (failed() == EEXIST)
      return false;
    if (failed() == EACCES)
      throw InputError(fmt::format("{} can't be written to: {}.", place(), last_message()));
    throw RunError(fmt::format("{} can't be written to: {}.", place(), last_message()));
  }

  bool replace_claim(const std::string& found, const std::string& text) override
  {
    const Document which(BCON_NEW("_id", BCON_UTF8("claim"), "content", BCON_UTF8(found.c_str())));
    const Document change(BCON_NEW("$set", "{", "content", BCON_UTF8(text.c_str()), "}"));
    bson_t reply;
    bson_iter_t at;
    const bool good =
        mongoc_collection_update_one(collection(claim_name).get(), which.get(), change.get(), nullptr, &reply, &error_);
    const bool done = good && bson_iter_init_find(&at, &reply, "matchedCount") && bson_iter_as_int64(&at) == 1;
    bson_destroy(&reply);
    if (!good)
      throw RunError(fmt::format("{} can't be written to: {}.", place(), last_message()));
    return done;
  }

  void remove_claim(const std::string& mine) override
  {
    const Document which(BCON_NEW("_id", BCON_UTF8("claim"), "content", BCON_UTF8(mine.c_str())));
    const auto of = collection(claim_name);
    bson_t reply;
    bson_iter_t at;
    const bool good = mongoc_collection_delete_one(of.get(), which.get(), nullptr, &reply, &error_);
    const bool done = good && bson_iter_init_find(&at, &reply, "deletedCount") && bson_iter_as_int64(&at) == 1;
    bson_destroy(&reply);
    if (done)
      mongoc_collection_drop(of.get(),
                             &error_); // a claim that is made in this moment is missed by its run, which then stops
  }

  std::vector<std::string> list(const std::string& dataset) override
  {
    std::vector<std::string> names;
    if (each_name(dataset.c_str(), 0, [&](const char* name) { names.emplace_back(name); }) != 0)
      throw RunError(fmt::format("{} can't be listed: {}.", place(), last_message()));
    return names;
  }

  nlohmann::ordered_json environment() override
  {
    nlohmann::ordered_json facts{{"type", "MongoDB"}};
    const Document ask(BCON_NEW("buildInfo", BCON_INT32(1)));
    bson_t reply;
    bson_iter_t at;
    if (mongoc_client_command_simple(client_.get(), "admin", ask.get(), nullptr, &reply, &error_))
      if (bson_iter_init_find(&at, &reply, "version") && BSON_ITER_HOLDS_UTF8(&at))
        facts["server_version"] = bson_iter_utf8(&at, nullptr);
    bson_destroy(&reply);
    return {{"service", facts}};
  }

private:
  Collection collection(const Name& name) const
  {
    return Collection(mongoc_client_get_collection(client_.get(), database_name_.c_str(), name.dataset()));
  }

  Collection collection(const char* name) const
  {
    return Collection(mongoc_client_get_collection(client_.get(), database_name_.c_str(), name));
  }

  /// A call that is ready to be made.
  struct Call {
    Call(Collection of_, bson_t* document_, bson_t* how_) : of(std::move(of_)), document(document_), how(how_) {}
    Collection of;
    Document document;
    Document how;
  };

  bson_t* whole_object(const Name& name, uint64_t size)
  {
    memory_.reserve(size); // grows once, in a run with objects larger than any before
    bson_t* document = bson_new();
    bson_append_utf8(document, "_id", 3, name.object(), -1);
    bson_append_int64(document, "size", 4, static_cast<int64_t>(size));
    bson_append_binary(document, "data", 4, BSON_SUBTYPE_BINARY, reinterpret_cast<const uint8_t*>(memory_.sent()),
                       static_cast<uint32_t>(size));
    return document;
  }
  static bson_t* key_of(const Name& name) { return BCON_NEW("_id", BCON_UTF8(name.object())); }
  static bson_t* one_field(const char* field)
  {
    return BCON_NEW("limit", BCON_INT64(1), "projection", "{", field, BCON_INT32(1), "}");
  }

  /// One field of an object.
  template <class Visit> int find(const Name& name, const char* field, Visit visit)
  {
    if (!prepared_)
      prepared_.emplace(collection(name), key_of(name), one_field(field));
    const Cursors cursor(mongoc_collection_find_with_opts(prepared_->of.get(), prepared_->document.get(),
                                                          prepared_->how.get(), nullptr));
    const bson_t* found = nullptr;
    bson_iter_t at;
    const bool there = mongoc_cursor_next(cursor.get(), &found) && bson_iter_init_find(&at, found, field);
    if (there)
      visit(at);
    const int error = there ? 0 : mongoc_cursor_error(cursor.get(), &error_) ? failed() : ENOENT;
    prepared_.reset();
    return error;
  }

  template <class Visit> int each_name(const char* dataset, int64_t most, Visit visit)
  {
    const Document all(bson_new());
    const Document how(BCON_NEW("limit", BCON_INT64(most), "projection", "{", "_id", BCON_INT32(1), "}"));
    const Collection of(mongoc_client_get_collection(client_.get(), database_name_.c_str(), dataset));
    const Cursors cursor(mongoc_collection_find_with_opts(of.get(), all.get(), how.get(), nullptr));
    for (const bson_t* found = nullptr; mongoc_cursor_next(cursor.get(), &found);)
      if (bson_iter_t at; bson_iter_init_find(&at, found, "_id") && BSON_ITER_HOLDS_UTF8(&at))
        visit(bson_iter_utf8(&at, nullptr));
    return mongoc_cursor_error(cursor.get(), &error_) ? failed() : 0;
  }

  int readdir(const Name& name, uint64_t& entries, int64_t most)
  {
    entries = 0;
    return each_name(name.dataset(), most, [&](const char*) { ++entries; });
  }

  int stat_collection(const Name& name)
  {
    const Document filter(BCON_NEW("filter", "{", "name", BCON_UTF8(name.dataset()), "}"));
    char** names = mongoc_database_get_collection_names_with_opts(database_.get(), filter.get(), &error_);
    if (!names)
      return failed();
    const bool there = *names != nullptr;
    bson_strfreev(names);
    return there ? 0 : ENOENT;
  }

  /// Codes of servers as their file src/mongo/base/error_codes.yml numbers them.
  int failed() const
  {
    if (error_.domain == MONGOC_ERROR_SERVER_SELECTION)
      return ECONNREFUSED;
    if (error_.domain == MONGOC_ERROR_STREAM)
      return ECONNRESET;
    switch (error_.code) {
      case 11000: // DuplicateKey
      case 48:    // NamespaceExists
        return EEXIST;
      case 26: // NamespaceNotFound
        return ENOENT;
      case 13: // Unauthorized
      case 18: // AuthenticationFailed
        return EACCES;
      case 50: // MaxTimeMSExpired
        return ETIMEDOUT;
      case 14031: // OutOfDiskSpace
        return ENOSPC;
      default:
        return EIO;
    }
  }

  std::string last_message() const
  {
    std::string text = error_.message;
    while (!text.empty() && (text.back() == '.' || text.back() == ' '))
      text.pop_back();
    return printable(text);
  }

  TransferMemory memory_;
  std::string database_name_, hosts_;
  std::unique_ptr<mongoc_client_t, Freed<mongoc_client_destroy>> client_;
  Database database_;
  bson_error_t error_{};
  std::optional<Call> prepared_; ///< for the operation that comes next
};

#endif

const bool registered = register_backend(
    {"mongodb",
     "documents in collections of a MongoDB database",
     parameters,
     {},
#ifdef IOCAST_HAS_LIBRARY
     "",
     [](const Parameters& given, const Client& client) { return std::make_unique<MongoDb>(given, client); }
#else
     "it was built without libmongoc; install libmongoc-dev, and build again.",
     nullptr
#endif
    });

} // namespace
} // namespace iocast

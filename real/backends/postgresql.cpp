// SPDX-License-Identifier: Apache-2.0
//
// postgresql: datasets are tables and objects are rows, (name, data) (Kunkel & Markomanolis 2018, section 3). Every
// operation is one statement and commits by itself.
#include "input/error.hpp"
#include "real/backend.hpp"

#ifdef IOCAST_HAS_LIBRARY
#include "real/transfer_memory.hpp"

#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <libpq-fe.h>
#endif

namespace iocast {
namespace {

const std::vector<Parameter> parameters{
    {"host", Unit::text, "",
     "host name, or directory of the server's socket; by default PGHOST, as for all of libpq. Passwords are taken "
     "from PGPASSWORD or PGPASSFILE (~/.pgpass) only"},
    {"port", Unit::text, "", "by default PGPORT, else 5432"},
    {"database", Unit::text, "", "by default PGDATABASE, else the user's name"},
    {"user", Unit::text, "", "by default PGUSER"},
    {"schema", Unit::text, "iocast",
     "schema for the tables; it is empty, and stays, or is made, and then removed with the last of the data"}};

#ifdef IOCAST_HAS_LIBRARY

constexpr const char* made_here = "made by iocast, and removed with its last data"; ///< comment on a schema
constexpr size_t longest_name   = 63; ///< PostgreSQL cuts longer identifiers, silently
constexpr unsigned text_type = 25, bytea_type = 17;

class PostgreSql final : public Backend {
public:
  PostgreSql(const Parameters& given, const Client& client) : memory_(client), schema_(given.text("schema"))
  {
    for (const auto& parameter : {"host", "port", "database", "user"})
      given_.push_back(given.text(parameter));
    if (schema_.empty() || schema_.size() > longest_name)
      throw InputError(fmt::format("--postgresql.schema takes a name of 1 to {} characters.", longest_name));
  }

  ~PostgreSql() override
  {
    PQclear(result_);
    PQfinish(connection_);
  }

  void connect() override
  {
    const char* names[]  = {"host", "port", "dbname", "user", "application_name", nullptr};
    const char* values[] = {given_[0].c_str(), given_[1].c_str(), given_[2].c_str(),
                            given_[3].c_str(), "iocast",          nullptr};
    connection_          = PQconnectdbParams(names, values, 0); // what is empty counts as not given
    if (PQstatus(connection_) != CONNECTION_OK)
      throw InputError(fmt::format("The database can't be connected to: {}.", last_message()));
    PQsetNoticeProcessor(
        connection_, [](void*, const char*) {}, nullptr);
  }

  bool prepares_calls() const override { return true; }

  void prepare_call(const Name& name, const Op& op) override
  {
    if (op.bytes() > 0 && (op.kind == OpKind::create || op.kind == OpKind::append))
      memory_.reserve(op.size);
    const auto text = statement_of(op.kind, *name.object() == '\0');
    prepared_       = text.empty() || std::strlen(name.dataset()) > longest_name
                          ? ""
                          : fmt::format(fmt::runtime(text), table(name.dataset()));
  }

  int mkdir(const Name& name) override { return run(name.dataset(), statement_of(OpKind::mkdir)); }

  int create(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    return write(name, size, watch, statement_of(OpKind::create));
  }

  int append(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    return write(name, size, watch, statement_of(OpKind::append));
  }

  int stat(const Name& name, uint64_t& size) override
  {
    if (*name.object() == '\0')
      return run(name.dataset(), statement_of(OpKind::stat, true));
    int error = run(name.dataset(), statement_of(OpKind::stat), {name.object()});
    if (error == 0 && PQntuples(result_) == 0)
      error = ENOENT;
    if (error == 0)
      size = std::strtoull(PQgetvalue(result_, 0, 0), nullptr, 10);
    return error;
  }

  int read(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    watch.lap(); // nothing is opened
    int error = run(name.dataset(), statement_of(OpKind::read), {name.object()}, true);
    if (error == 0 && PQntuples(result_) == 0)
      error = ENOENT;
    if (error == 0 && static_cast<uint64_t>(PQgetlength(result_, 0, 0)) < size)
      error = short_transfer;
    if (error != 0)
      return error;
    watch.lap();
    watch.lap(); // nor closed
    return 0;
  }

  int unlink(const Name& name) override
  {
    return changed(run(name.dataset(), statement_of(OpKind::unlink), {name.object()}));
  }

  /// As rmdir(2): not when something is in it.
  int rmdir(const Name& name) override { return run(name.dataset(), statement_of(OpKind::rmdir)); }

  bool serves(OpKind kind) const override
  {
    return Backend::serves(kind) || kind == OpKind::append || kind == OpKind::readdir;
  }

  int readdir(const Name& name, uint64_t& entries) override
  {
    const int error = run(name.dataset(), statement_of(OpKind::readdir));
    entries         = error == 0 ? static_cast<uint64_t>(PQntuples(result_)) : 0;
    return error;
  }

  void prepare(Slot, const Op& op) override { memory_.prepare(op, op.size); }
  void reserve(uint64_t bytes) override { memory_.reserve(bytes); }
  const char* fetched() const override { return PQgetvalue(result_, 0, 0); }

  bool keeps_data() const override { return true; }
  std::string place() const override
  {
    return fmt::format("The schema '{}' of the database '{}'", schema_, PQdb(connection_));
  }

  bool empty() override
  {
    ask("SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN "
        "('r', 'p', 'v', 'm', 'f', 'S') "
        "AND c.relname <> $2 AND c.relname <> 'iocast.claim.json'",
        {schema_, manifest_name});
    return PQntuples(result_) == 0;
  }

  std::string read_manifest() override
  {
    ask("SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = $2", {schema_, manifest_name});
    if (PQntuples(result_) == 0)
      return "";
    ask(fmt::format("SELECT content FROM {}", table(manifest_name)), {});
    return PQntuples(result_) == 1 ? PQgetvalue(result_, 0, 0) : "";
  }

  void write_manifest(const std::string& text) override
  {
    const auto name = table(manifest_name);
    ask(fmt::format("CREATE TABLE IF NOT EXISTS {} (one bool PRIMARY KEY, content text)", name), {});
    ask(fmt::format("INSERT INTO {} VALUES (true, $1) ON CONFLICT (one) DO UPDATE SET content = $1", name), {text});
  }

  void remove_manifest() override { ask(fmt::format("DROP TABLE IF EXISTS {}", table(manifest_name)), {}); }

  /// Of runs that begin at once one makes the schema, and perhaps another goes on: so a comment on the schema says that
  /// a run made it, from the same moment on.
  bool make_place() override
  {
    ask("SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = $1", {schema_});
    if (PQntuples(result_) > 0)
      return PQgetvalue(result_, 0, 0) == std::string_view(made_here);
    ask("BEGIN", {});
    const int error = run_statement(fmt::format("CREATE SCHEMA {}", quoted(schema_)), {}, false);
    if (error == 0) {
      ask(fmt::format("COMMENT ON SCHEMA {} IS '{}'", quoted(schema_), made_here), {});
      ask("COMMIT", {});
      return true;
    }
    const char* state   = PQresultErrorField(result_, PG_DIAG_SQLSTATE);
    const bool by_other = state && (std::strcmp(state, "42P06") == 0 || std::strcmp(state, "23505") == 0);
    const auto message  = last_message();
    ask("ROLLBACK", {});
    if (by_other)
      return make_place(); // it came a moment ago
    throw RunError(fmt::format("{} can't be made: {}.", place(), message));
  }

  /// Fails when anything is in it.
  void remove_place() override { run_statement(fmt::format("DROP SCHEMA {}", quoted(schema_)), {}, false); }

  std::optional<std::string> read_claim() override
  {
    const int error = run_statement(fmt::format("SELECT content FROM {}", table(claim_name)), {}, false);
    if (error == ENOENT)
      return std::nullopt;
    if (error != 0)
      throw RunError(fmt::format("{} can't be used: {}.", place(), last_message()));
    return PQntuples(result_) == 1 ? std::optional<std::string>(PQgetvalue(result_, 0, 0)) : std::nullopt;
  }

  bool make_claim(const std::string& text) override
  {
    const auto name = table(claim_name);
    int error       = 0;
    for (int tries = 0; tries < 20; ++tries) {
      // Two that make the table at once: one of them gets an error, and may go on.
      run_statement(fmt::format("CREATE TABLE IF NOT EXISTS {} (one bool PRIMARY KEY, content text NOT NULL)", name),
                    {}, false);
      error = run_statement(fmt::format("INSERT INTO {} VALUES (true, $1) ON CONFLICT (one) DO NOTHING", name), {text},
                            false);
      if (error == 0)
        return changed(0) == 0;
      if (error != ENOENT) // the one before removed the table in between
        break;
    }
    if (error == EACCES)
      throw InputError(fmt::format("{} can't be written to: {}.", place(), last_message()));
    throw RunError(fmt::format("{} can't be used: {}.", place(), last_message()));
  }

  bool replace_claim(const std::string& found, const std::string& text) override
  {
    ask(fmt::format("UPDATE {} SET content = $2 WHERE content = $1", table(claim_name)), {found, text});
    return changed(0) == 0;
  }

  void remove_claim(const std::string& mine) override
  {
    const auto name = table(claim_name);
    ask("BEGIN", {});
    // With the lock nobody can make a claim in a table that goes.
    bool good = run_statement(fmt::format("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", name), {}, false) == 0 &&
                run_statement(fmt::format("DELETE FROM {} WHERE content = $1", name), {mine}, false) == 0 &&
                changed(0) == 0 && run_statement(fmt::format("DROP TABLE {}", name), {}, false) == 0;
    run_statement(good ? "COMMIT" : "ROLLBACK", {}, false);
  }

  std::vector<std::string> list(const std::string& dataset) override
  {
    std::vector<std::string> names;
    const int error = run(dataset.c_str(), statement_of(OpKind::readdir));
    if (error != 0 && error != ENOENT)
      throw RunError(fmt::format("{} can't be listed: {}.", place(), last_message()));
    for (int row = 0; error == 0 && row < PQntuples(result_); ++row)
      names.emplace_back(PQgetvalue(result_, row, 0));
    return names;
  }

  nlohmann::ordered_json environment() override
  {
    nlohmann::ordered_json facts{{"type", "PostgreSQL"}};
    for (const char* setting :
         {"server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size"}) {
      ask("SELECT current_setting($1, true)", {setting});
      facts[setting] = PQgetvalue(result_, 0, 0);
    }
    return {{"service", facts}};
  }

private:
  /// A value that a statement refers to as $1, $2.
  struct Value {
    Value(const char* text) : bytes(text), size(std::strlen(text)) {}
    Value(const std::string& text) : bytes(text.c_str()), size(text.size()) {}
    Value(const char* data, uint64_t length) : bytes(data), size(length), type(bytea_type) {}
    const char* bytes;
    uint64_t size;
    unsigned type = text_type;
  };

  /// `{0}` stands for the dataset's table.
  static std::string_view statement_of(OpKind kind, bool whole_dataset = false)
  {
    switch (kind) {
      case OpKind::mkdir:
        return "CREATE TABLE {0} (name text PRIMARY KEY, data bytea NOT NULL)";
      case OpKind::create:
        return "INSERT INTO {0} VALUES ($1, $2)";
      case OpKind::append:
        return "UPDATE {0} SET data = data || $2 WHERE name = $1";
      case OpKind::stat:
        return whole_dataset ? "SELECT FROM {0} LIMIT 0" : "SELECT octet_length(data) FROM {0} WHERE name = $1";
      case OpKind::read:
        return "SELECT data FROM {0} WHERE name = $1";
      case OpKind::unlink:
        return "DELETE FROM {0} WHERE name = $1";
      case OpKind::rmdir:
        return "DO $do$ BEGIN IF EXISTS (SELECT FROM {0}) THEN RAISE SQLSTATE '2BP01'; ELSE DROP TABLE {0}; END IF; "
               "END $do$";
      case OpKind::readdir:
        return "SELECT name FROM {0}";
      default:
        return "";
    }
  }

  static std::string quoted(std::string_view name)
  {
    std::string text = "\"";
    for (const char c : name)
      text.append(c == '"' ? 2 : 1, c);
    return text + '"';
  }

  std::string table(std::string_view name) const { return quoted(schema_) + "." + quoted(name); }

  int write(const Name& name, uint64_t size, Stopwatch& watch, std::string_view statement)
  {
    watch.lap();
    memory_.reserve(size); // grows once, in a run with objects larger than any before
    if (const int error = changed(run(name.dataset(), statement, {name.object(), Value(memory_.sent(), size)}));
        error != 0)
      return error;
    watch.lap();
    watch.lap();
    return 0;
  }

  /// A statement that has to change one row.
  int changed(int error) const { return error == 0 && *PQcmdTuples(result_) == '0' ? ENOENT : error; }

  /// A statement about a dataset, `{0}` in it, or what was prepared for this call. @return 0 or an errno
  int run(const char* dataset, std::string_view statement, std::initializer_list<Value> values = {},
          bool binary = false)
  {
    if (std::strlen(dataset) > longest_name)
      return ENAMETOOLONG;
    const auto ready = std::exchange(prepared_, "");
    return run_statement(ready.empty() ? fmt::format(fmt::runtime(statement), table(dataset)) : ready, values, binary);
  }

  int run_statement(const std::string& statement, std::initializer_list<Value> values, bool binary)
  {
    // The server was away: this operation takes as long as it takes to find it again.
    if (PQstatus(connection_) != CONNECTION_OK) {
      PQreset(connection_);
      if (PQstatus(connection_) != CONNECTION_OK)
        return ECONNREFUSED;
    }
    std::array<unsigned, 2> types{};
    std::array<const char*, 2> bytes{};
    std::array<int, 2> sizes{}, formats{};
    size_t count = 0;
    for (const auto& value : values) {
      types[count]   = value.type;
      bytes[count]   = value.bytes;
      sizes[count]   = static_cast<int>(value.size);
      formats[count] = 1;
      ++count;
    }
    PQclear(result_);
    result_ = PQexecParams(connection_, statement.c_str(), static_cast<int>(count), types.data(), bytes.data(),
                           sizes.data(), formats.data(), binary);
    const auto status = PQresultStatus(result_);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? 0 : error_of_result();
  }

  /// Outside of timed regions. @throws RunError
  void ask(const std::string& statement, std::initializer_list<Value> values)
  {
    if (run_statement(statement, values, false) != 0)
      throw RunError(fmt::format("{} can't be used: {}.", place(), last_message()));
  }

  /// PostgreSQL manual, appendix A, "Error Codes".
  int error_of_result() const
  {
    if (PQstatus(connection_) != CONNECTION_OK)
      return ECONNRESET;
    const char* state = PQresultErrorField(result_, PG_DIAG_SQLSTATE);
    struct Known {
      const char* state;
      int error;
    };
    for (const auto& known : {Known{"42P01", ENOENT},
                              {"42P07", EEXIST},
                              {"23505", EEXIST},
                              {"2BP01", ENOTEMPTY},
                              {"42501", EACCES},
                              {"53100", ENOSPC},
                              {"53200", ENOMEM},
                              {"57014", ECANCELED},
                              {"40P01", EDEADLK},
                              {"25006", EROFS}})
      if (state && std::strcmp(state, known.state) == 0)
        return known.error;
    return EIO;
  }

  /// The first line of the last error of the server or libpq.
  std::string last_message() const
  {
    std::string text = PQerrorMessage(connection_);
    text             = text.substr(0, text.find('\n'));
    while (!text.empty() && (text.back() == '.' || text.back() == ' '))
      text.pop_back();
    return printable(text);
  }

  TransferMemory memory_;
  std::vector<std::string> given_;
  std::string schema_;
  std::string prepared_; ///< statement of the operation that comes next
  PGconn* connection_ = nullptr;
  PGresult* result_   = nullptr;
};

#endif

const bool registered = register_backend(
    {"postgresql",
     "rows in tables of a PostgreSQL database",
     parameters,
     {},
#ifdef IOCAST_HAS_LIBRARY
     "",
     [](const Parameters& given, const Client& client) { return std::make_unique<PostgreSql>(given, client); }
#else
     "it was built without libpq; install libpq-dev, and build again.",
     nullptr
#endif
    });

} // namespace
} // namespace iocast

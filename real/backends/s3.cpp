// SPDX-License-Identifier: Apache-2.0
//
// s3: datasets are buckets and objects are objects (Kunkel & Markomanolis 2018, section 3), or, for who may not make
// buckets, both are parts of the keys in one bucket. Every request is signed in full, payload included (AWS Signature
// Version 4).
#include "input/error.hpp"
#include "real/backend.hpp"

#ifdef IOCAST_HAS_LIBRARY
#include "profile/files.hpp"
#include "real/transfer_memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <curl/curl.h>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <optional>
#endif

namespace iocast {
namespace {

const std::vector<Parameter> parameters{
    {"endpoint", Unit::text, "", "URL of the service, as https://s3.example.org:9000"},
    {"region", Unit::text, "us-east-1", "region that requests are signed for"},
    {"prefix", Unit::text, "iocast",
     "what the names of all buckets begin with (with --s3.bucket: all keys); nothing else may"},
    {"bucket", Unit::text, "",
     "work in this bucket, which exists, with datasets as parts of the keys; without it each dataset is a bucket"},
    {"credentials", Unit::text, "",
     "file with aws_access_key_id and aws_secret_access_key; by default the environment "
     "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), else ~/.aws/credentials"},
    {"profile", Unit::text, "default", "section of that file"},
    {"timeout", Unit::seconds, "60s", "when a request without an answer has failed", 0.001, 1e6}};

#ifdef IOCAST_HAS_LIBRARY

/// An object that is a dataset's in a bucket that it shares. No key ending in a slash: to gateways to file systems that
/// means things of their own.
constexpr auto marker_key = ".dataset";
/// Objects of any size pass through a buffer of this size.
constexpr uint64_t chunk     = uint64_t{1} << 20;
constexpr size_t most_hashes = 4096;
/// Bytes of an answer that is read whole; a page of a listing has less than 2 MiB.
constexpr size_t most_text = size_t{16} << 20;
/// Pages of a listing, each of up to 1000 names.
constexpr size_t most_pages = 1'000'000;

// ---- credentials
// ------------------------------------------------------------------------------------------------------

struct Credentials {
  std::string key, secret, token;
};

std::string trimmed(std::string_view text)
{
  const auto first = text.find_first_not_of(" \t\r");
  return first == text.npos ? "" : std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

/// From a section of a file in the format that all S3 clients share.
Credentials credentials_in(const std::string& file, const std::string& profile)
{
  std::ifstream in(file);
  if (!in)
    throw InputError(fmt::format("The file '{}' with S3 credentials can't be read: {}.", file, std::strerror(errno)));
  std::map<std::string, std::string> found;
  std::string section;
  for (std::string line; std::getline(in, line);) {
    line = trimmed(line);
    if (line.starts_with('[') && line.ends_with(']'))
      section = trimmed(std::string_view(line).substr(1, line.size() - 2));
    else if (const auto equals = line.find('='); equals != line.npos && section == profile && !line.starts_with('#'))
      found[trimmed(line.substr(0, equals))] = trimmed(std::string_view(line).substr(equals + 1));
  }
  Credentials credentials{found["aws_access_key_id"], found["aws_secret_access_key"], found["aws_session_token"]};
  if (credentials.key.empty() || credentials.secret.empty())
    throw InputError(
        fmt::format("The file '{}' has no aws_access_key_id and aws_secret_access_key in its section [{}]; choose "
                    "another section with --s3.profile.",
                    file, profile));
  return credentials;
}

Credentials find_credentials(const std::string& file, const std::string& profile)
{
  if (!file.empty())
    return credentials_in(file, profile);
  auto given = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  if (!given("AWS_ACCESS_KEY_ID").empty() && !given("AWS_SECRET_ACCESS_KEY").empty())
    return {given("AWS_ACCESS_KEY_ID"), given("AWS_SECRET_ACCESS_KEY"), given("AWS_SESSION_TOKEN")};
  const std::string usual = given("HOME") + "/.aws/credentials";
  if (std::ifstream(usual))
    return credentials_in(usual, profile);
  throw InputError(
      "There are no S3 credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (mpirun -x hands them to other "
      "nodes), or name a file with --s3.credentials.");
}

// ---- signing
// ----------------------------------------------------------------------------------------------------------

using Digest = std::array<unsigned char, 32>;

std::string_view bytes_of(const Digest& digest)
{
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string hex(const Digest& digest)
{
  constexpr auto digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest)
    text += {digits[byte >> 4], digits[byte & 15]};
  return text;
}

Digest hmac(std::string_view key, std::string_view message)
{
  Digest result;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(message.data()),
       message.size(), result.data(), nullptr);
  return result;
}

class Sha256 {
public:
  Sha256() { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string end()
  {
    Digest result;
    EVP_DigestFinal_ex(context_.get(), result.data(), nullptr);
    return hex(result);
  }

private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_{EVP_MD_CTX_new()};
};

std::string sha256(std::string_view bytes)
{
  Sha256 sum;
  sum.add(bytes);
  return sum.end();
}

/// As in a URL's path, or with `slashes` encoded too, in its query.
std::string encoded(std::string_view text, bool slashes = false)
{
  std::string result;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' || c == '~' ||
        (c == '/' && !slashes))
      result += c;
    else
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return result;
}

/// What a request says of itself in its headers; "Signature Version 4" of the S3 API reference, "Authorization header".
class Signer {
public:
  Signer(Credentials credentials, std::string region) : credentials_(std::move(credentials)), region_(std::move(region))
  {
  }

  /// `path` and `query` are encoded, the query's parts sorted. @return headers as they go over the wire
  std::vector<std::string> headers(const char* method, const std::string& host, const std::string& path,
                                   const std::string& query, const std::string& payload_hash)
  {
    const std::time_t seconds = std::time(nullptr);
    std::tm utc;
    gmtime_r(&seconds, &utc);
    char now[17];
    std::strftime(now, sizeof now, "%Y%m%dT%H%M%SZ", &utc);
    const std::string day(now, 8);
    std::string lines = fmt::format("host:{}\nx-amz-content-sha256:{}\nx-amz-date:{}\n", host, payload_hash, now);
    std::string names = "host;x-amz-content-sha256;x-amz-date";
    if (!credentials_.token.empty()) {
      lines += fmt::format("x-amz-security-token:{}\n", credentials_.token);
      names += ";x-amz-security-token";
    }
    const auto request = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", method, path, query, lines, names, payload_hash);
    const auto scope   = fmt::format("{}/{}/s3/aws4_request", day, region_);
    const auto to_sign = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", now, scope, sha256(request));
    if (day != day_) {
      const auto of_region = hmac(bytes_of(hmac("AWS4" + credentials_.secret, day)), region_);
      key_                 = hmac(bytes_of(hmac(bytes_of(of_region), "s3")), "aws4_request");
      day_                 = day;
    }
    std::vector<std::string> headers{
        fmt::format("Authorization: AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}", credentials_.key,
                    scope, names, hex(hmac(bytes_of(key_), to_sign))),
        fmt::format("x-amz-content-sha256: {}", payload_hash), fmt::format("x-amz-date: {}", now)};
    if (!credentials_.token.empty())
      headers.push_back("x-amz-security-token: " + credentials_.token);
    return headers;
  }

private:
  Credentials credentials_;
  std::string region_;
  std::string day_;
  Digest key_{};
};

// ---- answers
// ----------------------------------------------------------------------------------------------------------

/// The texts of all elements of that name. The service's answers are flat enough for that.
std::vector<std::string> elements(std::string_view xml, const std::string& name)
{
  std::vector<std::string> found;
  const std::string open = "<" + name + ">", close = "</" + name + ">";
  for (size_t at = 0; (at = xml.find(open, at)) != xml.npos;) {
    at += open.size();
    const auto end = std::min(xml.find(close, at), xml.size());
    std::string text(xml.substr(at, end - at));
    for (const auto& [entity, character] :
         {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}})
      for (size_t where = 0; (where = text.find(entity, where)) != text.npos; ++where)
        text.replace(where, std::strlen(entity), character);
    found.push_back(text);
    at = end;
  }
  return found;
}

/// What the service calls the error: "NoSuchBucket".
std::string code_in(const std::string& xml)
{
  const auto codes = elements(xml, "Code");
  return codes.empty() ? "" : codes.front();
}

bool refuses_credentials(const std::string& code)
{
  for (const char* one :
       {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "RequestTimeTooSkewed"})
    if (code == one)
      return true;
  return false;
}

int error_of(CURLcode code)
{
  switch (code) {
    case CURLE_OK:
      return 0;
    case CURLE_COULDNT_CONNECT:
      return ECONNREFUSED;
    case CURLE_COULDNT_RESOLVE_HOST:
      return EHOSTUNREACH;
    case CURLE_OPERATION_TIMEDOUT:
      return ETIMEDOUT;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
      return ECONNRESET;
    case CURLE_PARTIAL_FILE:
      return short_transfer;
    default:
      return EPROTO;
  }
}

int error_of(long status, const std::string& code)
{
  if (status / 100 == 2)
    return 0;
  if (code == "BucketNotEmpty")
    return ENOTEMPTY;
  switch (status) {
    case 403:
      return EACCES;
    case 404:
      return ENOENT;
    case 409:
    case 412:
      return EEXIST;
    case 429:
    case 503:
      return EAGAIN;
    case 501:
      return ENOTSUP;
    case 507:
      return ENOSPC;
    default:
      return status / 100 == 4 ? EINVAL : EIO;
  }
}

// ---- the backend
// ------------------------------------------------------------------------------------------------------

class S3 final : public Backend {
public:
  S3(const Parameters& given, const Client& client)
      : endpoint_(given.text("endpoint"))
      , region_(given.text("region"))
      , prefix_(given.text("prefix"))
      , bucket_(given.text("bucket"))
      , timeout_ms_(static_cast<long>(given.number("timeout") * 1000))
      , client_(client)
      , memory_(client)
      , signer_(find_credentials(given.text("credentials"), given.text("profile")), region_)
  {
    read_endpoint();
    memory_.reserve(chunk);
  }

  ~S3() override { curl_easy_cleanup(curl_); }

  void connect() override
  {
    curl_ = curl_easy_init();
    if (!curl_)
      throw RunError("libcurl can't be started.");
    // Whether there is such a bucket or not: the answer shows that the service is there and takes the credentials.
    const int error = ask("GET", home(), "", "list-type=2&max-keys=1");
    refuse_unless_answered(error);
    if (!bucket_.empty() && error == ENOENT)
      throw InputError(
          fmt::format("There is no bucket '{}' at {}; make it first, or leave --s3.bucket out.", bucket_, endpoint_));
  }

  bool prepares_calls() const override { return true; }

  void prepare_call(const Name& name, const Op& op) override
  {
    switch (op.kind) {
      case OpKind::create:
        prepared_ = request("PUT", name, payload_hash(op.size));
        break;
      case OpKind::stat:
        prepared_ = request("HEAD", name);
        break;
      case OpKind::read:
        prepared_ = request("GET", name);
        break;
      case OpKind::unlink:
        prepared_ = request("DELETE", name);
        break;
      default:
        prepared_.reset();
    }
  }

  int mkdir(const Name& name) override
  {
    if (!bucket_.empty())
      return put(bucket_, key(name.dataset(), marker_key), "");
    return make_bucket(bucket_of(name.dataset()));
  }

  int create(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    watch.lap(); // nothing is opened
    size_ = size;
    if (const int error = send(prepared_ ? *take_prepared() : request("PUT", name, payload_hash(size))); error != 0)
      return error;
    watch.lap();
    watch.lap(); // nor closed
    return 0;
  }

  int stat(const Name& name, uint64_t& size) override
  {
    const bool whole  = *name.object() == '\0';
    const int error   = send(prepared_ ? *take_prepared() : request("HEAD", name));
    curl_off_t length = 0;
    if (error == 0 && curl_easy_getinfo(curl_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length) == CURLE_OK && !whole)
      size = static_cast<uint64_t>(length);
    return error;
  }

  int read(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    watch.lap();
    size_     = size;
    received_ = 0;
    int error = send(prepared_ ? *take_prepared() : request("GET", name), true);
    if (error == 0 && received_ < size)
      error = short_transfer;
    if (error != 0)
      return error;
    watch.lap();
    watch.lap();
    return 0;
  }

  int unlink(const Name& name) override { return send(prepared_ ? *take_prepared() : request("DELETE", name)); }

  /// As rmdir(2): not when something is in it. The service sees to that for buckets.
  int rmdir(const Name& name) override
  {
    if (!bucket_.empty()) {
      const auto folder = key(name.dataset(), "");
      if (const int error = ask("GET", bucket_, "", "list-type=2&max-keys=2&prefix=" + encoded(folder, true));
          error != 0)
        return error;
      for (const auto& found : elements(text_, "Key"))
        if (found != folder + marker_key)
          return ENOTEMPTY;
    }
    return ask("DELETE", bucket_of(name.dataset()), of_dataset(name), "");
  }

  bool serves(OpKind kind) const override { return Backend::serves(kind) || kind == OpKind::readdir; }

  int readdir(const Name& name, uint64_t& entries) override
  {
    entries = 0;
    return each_page(bucket_of(name.dataset()), bucket_.empty() ? "" : key(name.dataset(), ""),
                     [&](const std::string& xml) {
                       for (const char* of : {"Contents", "CommonPrefixes"})
                         for (const auto& entry : elements(xml, of))
                           entries += elements(entry, "Key") != std::vector{key(name.dataset(), marker_key)};
                     });
  }

  void prepare(Slot, const Op& op) override { memory_.prepare(op, std::min(op.size, chunk)); }
  void reserve(uint64_t bytes) override
  {
    memory_.reserve(bytes);
    hashes_.clear();
  }
  const char* fetched() const override { return memory_.received(); }

  bool keeps_data() const override { return true; }

  std::string place() const override
  {
    return bucket_.empty() ? fmt::format("The place '{}' at {}", prefix_, endpoint_)
                           : fmt::format("The place '{}' in the bucket '{}' at {}", prefix_, bucket_, endpoint_);
  }

  bool empty() override
  {
    const std::string manifest = key("", manifest_name), claim = key("", claim_name);
    bool found = false;
    const int error =
        bucket_.empty() ? ask("GET", "", "", "") : each_page(bucket_, prefix_ + "/", [&](const std::string& xml) {
          for (const auto& key : elements(xml, "Key"))
            found = found || (key != manifest && !key.starts_with(claim));
          found = found || !elements(xml, "CommonPrefixes").empty();
        });
    refuse_unless(error, "can't be listed");
    if (!bucket_.empty())
      return !found;
    bool there = false;
    for (const auto& name : elements(text_, "Name")) {
      found = found || name.starts_with(prefix_ + "-");
      there = there || name == prefix_;
    }
    // A bucket of that name may be somebody else's.
    if (there)
      refuse_unless(each_page(prefix_, "",
                              [&](const std::string& xml) {
                                for (const auto& key : elements(xml, "Key"))
                                  found = found || (key != manifest && !key.starts_with(claim));
                                found = found || !elements(xml, "CommonPrefixes").empty();
                              }),
                    "can't be listed");
    return !found;
  }

  std::string read_manifest() override
  {
    const int error = ask("GET", home(), key("", manifest_name), "");
    if (error != ENOENT)
      refuse_unless(error, "can't be read");
    return error == 0 ? text_ : "";
  }

  void write_manifest(const std::string& text) override
  {
    refuse_unless(put(home(), key("", manifest_name), text), "can't be written to");
  }

  void remove_manifest() override
  {
    if (const int error = ask("DELETE", home(), key("", manifest_name), ""); error != ENOENT)
      refuse_unless(error, "can't be removed");
  }

  bool make_place() override
  {
    if (!bucket_.empty())
      return false;
    const int error = ask("GET", home(), "", "list-type=2&max-keys=1");
    if (error == 0)
      return false; // services may answer that they made a bucket that was there
    if (error != ENOENT)
      refuse_unless(error, "can't be used");
    refuse_unless(make_bucket(home()), "can't be made");
    return true;
  }

  /// The service removes no bucket that has something in it.
  void remove_place() override
  {
    if (bucket_.empty())
      ask("DELETE", home(), "", "");
  }

  /// Services that do not know the condition put the second object in place of the first.
  bool claims_atomically() override
  {
    const auto trial = key("", claim_name) + "." + random_word();
    refuse_unless(put_if_absent(trial, "trial"), "can't be written to");
    const int again = put_if_absent(trial, "trial");
    ask("DELETE", home(), trial, "");
    return again == EEXIST;
  }

  std::optional<std::string> read_claim() override
  {
    const int error = ask("GET", home(), key("", claim_name), "");
    if (error == ENOENT)
      return std::nullopt;
    refuse_unless(error, "can't be read");
    return text_;
  }

  bool make_claim(const std::string& text) override
  {
    const int error = put_if_absent(key("", claim_name), text);
    if (error != EEXIST)
      refuse_unless(error, "can't be written to");
    return error == 0;
  }

  bool replace_claim(const std::string& found, const std::string& text) override
  {
    if (read_claim() != found)
      return false;
    refuse_unless(put(home(), key("", claim_name), text), "can't be written to");
    return read_claim() == text;
  }

  void remove_claim(const std::string& mine) override
  {
    if (read_claim() == mine)
      ask("DELETE", home(), key("", claim_name), "");
  }

  std::vector<std::string> list(const std::string& dataset) override
  {
    std::vector<std::string> names;
    const std::string folder = bucket_.empty() ? "" : key(dataset.c_str(), "");
    const int error          = each_page(bucket_of(dataset.c_str()), folder, [&](const std::string& xml) {
      for (const auto& found : elements(xml, "Key")) {
        if (!found.starts_with(folder))
          throw RunError(
              fmt::format("The service at {}, in a list of names that begin with '{}', has '{}'; it can't be used.",
                                   endpoint_, folder, printable(found)));
        if (found != folder + marker_key)
          names.push_back(found.substr(folder.size()));
      }
    });
    if (error != ENOENT)
      refuse_unless(error, "can't be listed");
    return names;
  }

  nlohmann::ordered_json environment() override { return {{"service", {{"type", "S3"}, {"server", server_}}}}; }

private:
  void read_endpoint()
  {
    const auto scheme = endpoint_.find("://");
    if (!endpoint_.starts_with("http://") && !endpoint_.starts_with("https://"))
      throw InputError(fmt::format("--s3.endpoint can't be '{}'; it takes a URL that begins with http:// or https://.",
                                   endpoint_.find('@') == endpoint_.npos ? endpoint_ : "(hidden)"));
    if (endpoint_.find('@') != endpoint_.npos)
      throw InputError("--s3.endpoint takes no user and password; see --s3.credentials.");
    if (endpoint_.find_first_of("?#") != endpoint_.npos) // a signature may be in them
      throw InputError("--s3.endpoint takes a URL without '?' and '#', and what follows them; requests are signed with "
                       "--s3.credentials.");
    while (endpoint_.ends_with('/'))
      endpoint_.pop_back();
    const auto slash = std::min(endpoint_.find('/', scheme + 3), endpoint_.size());
    host_            = endpoint_.substr(scheme + 3, slash - scheme - 3);
    path_            = endpoint_.substr(slash);
    // libcurl leaves out the port that goes without saying.
    const char* usual = endpoint_.starts_with("https") ? ":443" : ":80";
    if (host_.ends_with(usual))
      host_.resize(host_.size() - std::strlen(usual));
    if (prefix_.empty())
      throw InputError("--s3.prefix can't be empty: it tells the data of this run from all other.");
  }

  /// Where the manifest is.
  std::string home() const { return bucket_.empty() ? prefix_ : bucket_; }

  /// Buckets have names of small letters, digits and hyphens, with dots between them.
  std::string bucket_of(const char* dataset) const
  {
    if (!bucket_.empty())
      return bucket_;
    std::string name = prefix_ + "-";
    for (; *dataset != '\0'; ++dataset)
      if ((*dataset >= 'a' && *dataset <= 'z') || (*dataset >= '0' && *dataset <= '9'))
        name += *dataset;
      else if (*dataset == '_' || *dataset == '/')
        name += *dataset == '_' ? '-' : '.';
      else
        name += fmt::format("-x{:02x}-", static_cast<unsigned char>(*dataset));
    return name;
  }

  std::string key(const char* dataset, const char* object) const
  {
    if (bucket_.empty())
      return object;
    return *dataset == '\0' ? fmt::format("{}/{}", prefix_, object) : fmt::format("{}/{}/{}", prefix_, dataset, object);
  }

  /// The key that marks a dataset as a whole; none for a bucket.
  std::string of_dataset(const Name& name) const { return bucket_.empty() ? "" : key(name.dataset(), marker_key); }

  int make_bucket(const std::string& name)
  {
    // The first region is the one that must not be named.
    return put(name, "",
               region_ == "us-east-1"
                   ? ""
                   : fmt::format("<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                                 "<LocationConstraint>{}</LocationConstraint></CreateBucketConfiguration>",
                                 region_));
  }

  int put(const std::string& bucket, const std::string& object, std::string_view body)
  {
    body_           = body;
    size_           = body.size();
    const int error = ask("PUT", bucket, object, "", sha256(body));
    body_           = {};
    return error;
  }

  /// EEXIST: it is there already.
  int put_if_absent(const std::string& object, std::string_view body)
  {
    body_     = body;
    size_     = body.size();
    auto asks = request("PUT", home(), object, "", sha256(body));
    asks.add("If-None-Match: *");
    const int error = send(asks);
    body_           = {};
    return error;
  }

  /// Calls visit(answer) for each page of a listing of the names that begin with `folder` and lie in no folder within
  /// it.
  template <class Visit> int each_page(const std::string& bucket, const std::string& folder, Visit visit)
  {
    const std::string rest =
        folder.empty() ? "list-type=2" : "delimiter=%2F&list-type=2&prefix=" + encoded(folder, true);
    std::string from, before;
    for (size_t pages = 0; pages < most_pages; ++pages) {
      if (const int error = ask("GET", bucket, "", from + rest); error != 0)
        return error;
      visit(text_);
      const auto more = elements(text_, "NextContinuationToken");
      if (more.empty())
        return 0;
      if (more.front() == before || (elements(text_, "Key").empty() && elements(text_, "CommonPrefixes").empty()))
        break;
      before = more.front();
      from   = "continuation-token=" + encoded(before, true) + "&";
    }
    throw RunError(
        fmt::format("The service at {} lists the bucket '{}' without end; it can't be used.", endpoint_, bucket));
  }

  /// A signed request; the service takes it within minutes.
  struct Request {
    struct Free {
      void operator()(curl_slist* list) const { curl_slist_free_all(list); }
    };
    const char* method;
    std::string url;
    std::unique_ptr<curl_slist, Free> headers;

    void add(const std::string& header) { headers.reset(curl_slist_append(headers.release(), header.c_str())); }
  };

  Request request(const char* method, const std::string& bucket, const std::string& object, const std::string& query,
                  const std::string& payload_hash)
  {
    const std::string path = path_ + "/" + bucket + (object.empty() ? "" : "/" + encoded(object));
    Request result{
        method, endpoint_.substr(0, endpoint_.size() - path_.size()) + path + (query.empty() ? "" : "?" + query), {}};
    result.add("Expect:"); // no round trip to ask whether the payload is welcome
    // A parameter without a value is signed with its equals sign; there is none such here.
    for (const auto& header : signer_.headers(method, host_, path, query, payload_hash))
      result.add(header);
    return result;
  }

  /// About the object, or about what stands for the dataset.
  Request request(const char* method, const Name& name, const std::string& payload_hash = nothing_hash_)
  {
    const bool whole = *name.object() == '\0';
    return request(method, bucket_of(name.dataset()), whole ? of_dataset(name) : key(name.dataset(), name.object()), "",
                   payload_hash);
  }

  std::optional<Request> take_prepared() { return std::exchange(prepared_, std::nullopt); }

  /// This many bytes of the memory for transfers. Unless the run verifies they are always the same.
  std::string payload_hash(uint64_t size)
  {
    if (const auto known = hashes_.find(size); known != hashes_.end() && !client_.content)
      return known->second;
    Sha256 sum;
    for (uint64_t done = 0; done < size; done += chunk)
      sum.add({memory_.sent(done), std::min(chunk, size - done)});
    if (hashes_.size() >= most_hashes)
      hashes_.clear();
    return hashes_[size] = sum.end();
  }

  int ask(const char* method, const std::string& bucket, const std::string& object, const std::string& query,
          const std::string& payload_hash = nothing_hash_)
  {
    return send(request(method, bucket, object, query, payload_hash));
  }

  /// What a PUT sends is body_, or size_ bytes of the memory for transfers; what a GET fetches becomes text_, or goes
  /// into that memory.
  int send(const Request& request, bool into_memory = false)
  {
    const char* const method = request.method;
    curl_easy_reset(curl_);
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_HTTPHEADER, request.headers.get());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TIMEOUT_MS, timeout_ms_);
    set(CURLOPT_WRITEFUNCTION, &S3::received);
    set(CURLOPT_WRITEDATA, this);
    if (server_.empty()) {
      set(CURLOPT_HEADERFUNCTION, &S3::header);
      set(CURLOPT_HEADERDATA, this);
    }
    if (*method == 'P') {
      sent_ = 0;
      set(CURLOPT_UPLOAD, 1L);
      set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(size_));
      set(CURLOPT_READFUNCTION, &S3::sent);
      set(CURLOPT_READDATA, this);
      set(CURLOPT_SEEKFUNCTION, &S3::again);
      set(CURLOPT_SEEKDATA, this);
    } else if (*method == 'H') {
      set(CURLOPT_NOBODY, 1L);
    } else if (*method == 'D') {
      set(CURLOPT_CUSTOMREQUEST, method);
    }
    text_.clear();
    into_memory_        = into_memory;
    const CURLcode code = curl_easy_perform(curl_);
    if (code != CURLE_OK)
      return error_of(code);
    long status = 0;
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
    return error_of(status, status / 100 == 2 ? "" : code_in(text_));
  }

  template <class Value> void set(CURLoption option, Value value) { curl_easy_setopt(curl_, option, value); }

  static size_t sent(char* to, size_t size, size_t count, void* self)
  {
    auto& s3              = *static_cast<S3*>(self);
    const uint64_t within = s3.sent_ % chunk;
    const auto bytes      = std::min({uint64_t{size} * count, s3.size_ - s3.sent_, chunk - within});
    const char* from      = s3.body_.data() ? s3.body_.data() + s3.sent_ : s3.memory_.sent(s3.sent_ - within) + within;
    std::memcpy(to, from, bytes);
    s3.sent_ += bytes;
    return bytes;
  }

  static int again(void* self, curl_off_t offset, int)
  {
    static_cast<S3*>(self)->sent_ = static_cast<uint64_t>(offset);
    return CURL_SEEKFUNC_OK;
  }

  static size_t received(char* from, size_t size, size_t count, void* self)
  {
    auto& s3    = *static_cast<S3*>(self);
    long status = 0;
    curl_easy_getinfo(s3.curl_, CURLINFO_RESPONSE_CODE, &status);
    if (!s3.into_memory_ || status / 100 != 2) {
      if (s3.text_.size() + size * count > most_text)
        return 0; // ends the transfer
      s3.text_.append(from, size * count);
      return size * count;
    }
    if (s3.received_ > s3.size_ + most_text)
      return 0;
    for (uint64_t moved = 0; moved < size * count && s3.received_ + moved < s3.size_;) {
      const uint64_t at     = s3.received_ + moved;
      const uint64_t within = at % chunk;
      const uint64_t bytes  = std::min({size * count - moved, chunk - within, s3.size_ - at});
      std::memcpy(s3.memory_.received(at - within) + within, from + moved, bytes);
      moved += bytes;
    }
    s3.received_ += size * count;
    return size * count;
  }

  static size_t header(char* from, size_t size, size_t count, void* self)
  {
    std::string line(from, size * count);
    std::transform(line.begin(), line.begin() + std::min<std::ptrdiff_t>(7, static_cast<std::ptrdiff_t>(line.size())),
                   line.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (line.starts_with("server:"))
      static_cast<S3*>(self)->server_ = trimmed(std::string_view(line).substr(7, line.find_last_not_of("\r\n") - 6));
    return size * count;
  }

  /// After the first request. @throws InputError with what the user can do about it
  void refuse_unless_answered(int error)
  {
    // Gateways have answers of their own to unknown keys, 404 among them.
    const auto code = code_in(text_);
    if (error == EACCES || refuses_credentials(code) || (error == ENOENT && !code.empty() && code != "NoSuchBucket"))
      throw InputError(
          fmt::format("The service at {} refuses the credentials{}; see --s3.credentials.", endpoint_, detail()));
    for (const int far : {ECONNREFUSED, EHOSTUNREACH, ETIMEDOUT, ECONNRESET, EPROTO})
      if (error == far)
        throw InputError(
            fmt::format("The service at {} does not answer: {}.", endpoint_,
                        error == EHOSTUNREACH ? "its host is unknown, or can't be reached" : std::strerror(error)));
    if (error != 0 && error != ENOENT)
      throw InputError(
          fmt::format("The service at {} can't be used: {}{}.", endpoint_, std::strerror(error), detail()));
  }

  void refuse_unless(int error, const char* what)
  {
    if (error != 0)
      throw RunError(fmt::format("{} {}: {}{}.", place(), what, error_text(error), detail()));
  }

  std::string detail() const
  {
    const auto code = code_in(text_);
    return code.empty() ? "" : fmt::format(" ({})", printable(code, 64));
  }

  /// SHA-256 of no bytes.
  static inline const std::string nothing_hash_ = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

  std::string endpoint_, host_, path_; ///< "https://host:9000/base", "host:9000", "/base"
  std::string region_, prefix_, bucket_;
  long timeout_ms_;
  Client client_;
  TransferMemory memory_;
  Signer signer_;
  CURL* curl_ = nullptr;

  std::string_view body_;
  uint64_t size_ = 0, sent_ = 0, received_ = 0;
  bool into_memory_ = false;
  std::string text_, server_;
  std::optional<Request> prepared_;        ///< of the operation that comes next
  std::map<uint64_t, std::string> hashes_; ///< of payloads, by size
};

#endif

const bool registered =
    register_backend({"s3",
                      "objects in buckets, through the S3 protocol",
                      parameters,
                      {},
#ifdef IOCAST_HAS_LIBRARY
                      "",
                      [](const Parameters& given, const Client& client) { return std::make_unique<S3>(given, client); }
#else
                      "it was built without libcurl and OpenSSL; install libcurl4-openssl-dev and libssl-dev, and "
                      "build again.",
                      nullptr
#endif
    });

} // namespace
} // namespace iocast

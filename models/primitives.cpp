// SPDX-License-Identifier: Apache-2.0
#include "models/mechanism.hpp"
#include "models/topology.hpp"

#include <fmt/format.h>

namespace iocast {

namespace {
std::vector<PrimitiveEntry> of_the_engine()
{
  return {
      {"station",
       "servers that work on requests",
       {{"per", "system (default) or node: owner of an instance"},
        {"count", "instances, when per system"},
        {"spread",
         "choice of the instance: by dataset (default), object or stripe; round-robin: a dataset's objects in "
         "turn"},
        {"stripe_size", "spread by stripe: bytes of an object on one instance before the next, default 1 MiB"},
        {"stripe_count", "spread by stripe: instances of an object, default all"},
        {"allocation", "spread by stripe: an object's first instance, chosen by-name (default: by chance), or "
                       "round-robin: behind those of the object before it; or weighted, by chance as its share of all "
                       "free space has it; or by-stripe: each stripe by chance, on any instance"},
        {"free", "with allocation: weighted: a list of the free bytes of each instance"},
        {"servers", "servers (threads, cores) of an instance"},
        {"speed",
         "factor on the speed of service: 1 (default) as the demands state, 2 takes half of it; time by bytes stays"},
        {"sockets", "servers: number on one socket; remote: extra share of a service's time when all its memory is on "
                    "another socket. Requests spread over all sockets that the servers need"},
        {"discipline", "fcfs (default), ps (processor sharing) or timeslice (round robin)"},
        {"priority",
         "fcfs: order of classes in which waiting requests are served, first come, first served within one; "
         "nobody loses a server. A class is a name or a list of names: operations, wake, drain (emptying "
         "buffers, filling pools, fetching ahead), background (background load), rest (everything not "
         "named; last by default)"},
        {"quantum", "timeslice: longest time on a server while others wait"},
        {"waiting", "oldest-first (default) or newest-first: of those who wait, whom a server takes"},
        {"contention", "sigma of the universal scalability law: each of n busy servers runs at "
                       "1/(1 + sigma (n-1) + kappa n (n-1))"},
        {"coherency", "kappa of the same law"},
        {"speeds",
         "in place of contention, coherency and sockets: a measured table, the speed of each of 1, 2, ... busy "
         "servers; the last entry holds for more"},
        {"crowding",
         "a service that starts while others wait takes 1 + crowding ln(1 + waiting / servers) times as long"},
        {"disk", "a device of each instance for bytes: see disk"},
        {"rpc", "size: bytes of a request, into which a client cuts a transfer to or from an instance; in_flight: "
                "requests on their way at a time, of a node to an instance. A transfer of several requests is at the "
                "network, the servers and the disk at the same time"},
        {"redundancy", "copies or coded shards of an instance's objects, at others: see redundancy"},
        {"wakeup", "timeslice: a job that comes from a sleep or an answer 'preempts' (default) a running one or "
                   "'queues'"}}},
      {"visit",
       "a step at a station: wait for a server, be served",
       {{"station", "name of the station"},
        {"demand", "service time: a law or the name of a demand"},
        {"per",
         "operation (default); entry: the demand for each entry that a readdir lists; block: for each block of an "
         "access"},
        {"bandwidth", "adds the operation's bytes / bandwidth to the service"},
        {"lock", "a lock that is held during lock_share of the demand"},
        {"lock_share", "share of the demand with the lock held, default 1"},
        {"lock_mode", "exclusive (default) or shared with other readers. Locks are granted in order of arrival"},
        {"recall",
         "steps that follow when the lock was revoked from other nodes, such as a flush of their buffers; the "
         "lock is free meanwhile"},
        {"stripes",
         "number of parts, each with its own demand and its share of the bytes, at neighbouring instances at "
         "the same time; the visit ends with the last (fork-join). spanned: one part for each instance with "
         "bytes of the access"}}},
      {"forget",
       "a step that removes the operation's object from a cache; of pages, the first ones that are there without a gap",
       {{"forget", "name of the cache: the node's or the server's own, unless `of` is given"},
        {"of",
         "elsewhere: from the caches of all other nodes, as when a lock is revoked; everywhere: from all. A pread "
         "or pwrite removes the pages that it touches, any other operation all of the object's"},
        {"recall", "with `of: elsewhere`: steps that follow when others had it, and it was called back"}}},
      {"flush",
       "a step that waits until a buffer is drained",
       {{"flush", "name of the buffer; the node's or the server's own"},
        {"of", "all (default): everything in it now; object: the operation's object; everywhere: the object in every "
               "buffer of that name; elsewhere: in every other one, as when a lock is revoked"}}},
      {"delay", "a step that takes time without a server", {{"delay", "a law or the name of a demand"}}},
      {"transfer",
       "a step that moves the operation's bytes, as a flow that shares the network's links fairly",
       {{"transfer", "write (to the server) or read (from it)"},
        {"station", "station of the other end"},
        {"demand", "where the station has rpc: the bytes move in requests, each with this service time there and an "
                   "answer; a law or the name of a demand"},
        {"stripes", "spanned: one part for each instance with bytes of it, at the same time; default: all with the "
                    "instance of the first byte"}}},
      {"disk",
       "a device for bytes, of each instance of a station; a transfer to or from the station passes it, and so does a "
       "step {disk: write, station: NAME}",
       {{"read", "bytes a second when nobody writes"},
        {"write", "bytes a second when nobody reads"},
        {"together", "bytes a second of reads and writes at the same time; default: they share the device's time"},
        {"overhead", "time of an access or request beside its bytes, such as a seek; default 0"},
        {"slowdown",
         "share of its speed that is left with 1, 2, ... accesses at a time; the last entry holds for more"},
        {"discipline", "shared (default): all accesses at a time share it; fifo: one after the other"}}},
      {"redundancy",
       "of a station: the instance that has the object sends what is written to others, and a write ends when all have "
       "it on their disks. Requests beyond one of `rpc` are passed on while more come. The others are those behind it",
       {{"copies", "instances that have all bytes of an object; reads go to the first one"},
        {"data", "in place of copies: erasure coding, the instances that have a part of each stripe; all of them are "
                 "read"},
        {"parity", "with data: further instances, which have as much of each stripe as one of these"},
        {"unit", "with data: bytes of a stripe at one instance, default 4 KiB. An append or pwrite of a part of a "
                 "stripe reads that stripe, and then writes it whole"}}},
      {"clients",
       "the client nodes",
       {{"speed_sigma", "sigma of a lognormal factor on each node's own demands"},
        {"slow_nodes", "share: of the nodes, evenly spread; factor: on their demands at their own stations, or at the "
                       "one that station names. Default: none"},
        {"think_overshoot", "extra time that a sleep takes beyond the requested think time"},
        {"wake_slowdown", "factor on the demands at stations of the node when ranks think between operations (cold "
                          "caches)"},
        {"collective", "aggregators: ranks of a node that make a collective access for all, by turns a unit of it "
                       "each; unit: its bytes, or stripes_of: the station whose stripes they are. Default: each rank "
                       "makes its own"}}}};
}
} // namespace

const std::vector<PrimitiveEntry>& primitives()
{
  static const std::vector<PrimitiveEntry> entries = [] {
    std::vector<PrimitiveEntry> all = of_the_engine();
    for (const auto& kind : mechanism_kinds())
      all.push_back({kind.word, kind.summary, kind.meanings(), &kind});
    for (const auto& kind : topology_kinds())
      all.push_back({kind.name, fmt::format("a topology of the network: {}", kind.summary), kind.keys, nullptr});
    return all;
  }();
  return entries;
}

} // namespace iocast

// SPDX-License-Identifier: Apache-2.0
//
//   actors NODES RANKS_PER_NODE REQUESTS
//
// The closed network of closed.yaml as one writes it with SimGrid's own means: a client is an actor, the station's 16
// servers are actors at one mailbox, a node's request slots a semaphore, and the way a link of 5 us. Each client makes
// REQUESTS requests. Prints JSON: requests, wall_seconds, simulated_seconds, peak_rss_bytes.
#include "sim/simgrid/compat.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <sys/resource.h>

namespace compat = iocast::simgrid_compat;
namespace s4u    = simgrid::s4u;

int main(int argc, char** argv)
{
  s4u::Engine engine(&argc, argv);
  if (argc != 4) {
    std::fprintf(stderr, "actors: Give the number of nodes, of ranks a node and of requests a rank.\n");
    return 2;
  }
  const int nodes = std::atoi(argv[1]), ranks = std::atoi(argv[2]), requests = std::atoi(argv[3]);
  constexpr int servers = 16;
  s4u::Engine::set_config("network/model:CM02"); // a message takes the link's latency, nothing else
  const auto began = std::chrono::steady_clock::now();

  auto* const zone   = compat::add_star_zone("system");
  auto* const server = compat::add_host(zone, "server", 1e9);
  auto* const client = compat::add_host(zone, "clients", 1e9);
  auto* const way =
      compat::add_link(zone, "way", 1e15)->set_latency(5e-6)->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
  zone->add_route(client->get_netpoint(), nullptr, nullptr, nullptr, {s4u::LinkInRoute(way)}, true);
  zone->add_route(server->get_netpoint(), nullptr, nullptr, nullptr, {}, true);
  zone->seal();

  auto* const queue = s4u::Mailbox::by_name("server");
  for (int s = 0; s < servers; ++s)
    compat::add_actor("server", server, [queue, s] {
      s4u::Actor::self()->daemonize();
      std::mt19937_64 generator(static_cast<unsigned>(s));
      std::exponential_distribution<double> service(1 / 100e-6);
      for (;;) {
        auto* const answer = queue->get<s4u::Mailbox>();
        s4u::this_actor::sleep_for(service(generator));
        answer->put_init(answer, 0)->detach();
      }
    });
  for (int node = 0; node < nodes; ++node) {
    auto slots = s4u::Semaphore::create(8);
    for (int rank = 0; rank < ranks; ++rank)
      compat::add_actor("client", client, [queue, slots, node, rank, requests] {
        auto* const mine = s4u::Mailbox::by_name(std::to_string(node) + "-" + std::to_string(rank));
        for (int request = 0; request < requests; ++request) {
          slots->acquire();
          queue->put(mine, 0);
          mine->get<s4u::Mailbox>();
          slots->release();
        }
      });
  }
  engine.run();

  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("{\"requests\": %lld, \"wall_seconds\": %.6f, \"simulated_seconds\": %.6f, \"peak_rss_bytes\": %lld}\n",
              1LL * nodes * ranks * requests, seconds, s4u::Engine::get_clock(), 1024LL * used.ru_maxrss);
  return 0;
}

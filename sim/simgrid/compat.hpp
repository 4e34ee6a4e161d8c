// SPDX-License-Identifier: Apache-2.0
#pragma once
//
// The names that changed between SimGrid 3.32 (Debian 12) and 4.1, in one place.
#include <functional>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>
#include <string>

namespace iocast::simgrid_compat {

namespace s4u = simgrid::s4u;

#if SIMGRID_VERSION >= 40000
inline s4u::ActorPtr add_actor(const std::string& name, s4u::Host* host, const std::function<void()>& code)
{
#if SIMGRID_VERSION >= 40100
  return host->add_actor(name, code);
#else
  return s4u::Engine::get_instance()->add_actor(name, host, code);
#endif
}
inline s4u::Host* add_host(s4u::NetZone* zone, const std::string& name, double speed)
{
  return zone->add_host(name, speed);
}
inline s4u::Link* add_link(s4u::NetZone* zone, const std::string& name, double bandwidth)
{
  return zone->add_link(name, bandwidth);
}
inline s4u::NetZone* add_star_zone(const std::string& name)
{
  return s4u::Engine::get_instance()->get_netzone_root()->add_netzone_star(name);
}
inline s4u::NetZone* add_full_zone(const std::string& name)
{
  return s4u::Engine::get_instance()->get_netzone_root()->add_netzone_full(name);
}
#else
inline s4u::ActorPtr add_actor(const std::string& name, s4u::Host* host, const std::function<void()>& code)
{
  return s4u::Actor::create(name, host, code);
}
inline s4u::Host* add_host(s4u::NetZone* zone, const std::string& name, double speed)
{
  return zone->create_host(name, speed);
}
inline s4u::Link* add_link(s4u::NetZone* zone, const std::string& name, double bandwidth)
{
  return zone->create_link(name, bandwidth);
}
inline s4u::NetZone* add_star_zone(const std::string& name)
{
  return s4u::create_star_zone(name);
}
inline s4u::NetZone* add_full_zone(const std::string& name)
{
  return s4u::create_full_zone(name);
}
#endif

#if SIMGRID_VERSION >= 33400
inline void on_comm_completion(const std::function<void(s4u::Comm const&)>& callback)
{
  s4u::Comm::on_completion_cb(callback);
}
#else
inline void on_comm_completion(const std::function<void(s4u::Comm const&)>& callback)
{
  s4u::Activity::on_completion_cb([callback](s4u::Activity const& activity) {
    if (const auto* comm = dynamic_cast<s4u::Comm const*>(&activity))
      callback(*comm);
  });
}
#endif

} // namespace iocast::simgrid_compat

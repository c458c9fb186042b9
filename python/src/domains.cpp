#include "domains.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>

#include "errors.hpp"
#include "lockflight/domain.hpp"
#include "seconds.hpp"
#include "waiting.hpp"

namespace nb = nanobind;

namespace lockflight::python {
namespace {

domain open_domain(const std::string& name, std::int64_t slots, std::int64_t names,
                   std::int64_t mode, const std::string& group) {
  // Numbers beyond those of C++ are refused here, in the same words.
  const auto within = [](const char* what, std::int64_t number, std::int64_t least,
                         std::int64_t most) {
    if (number < least || number > most)
      refuse(PyExc_ValueError, std::string(what) + " " + std::to_string(number) + " (accepted: " +
                                   std::to_string(least) + " to " + std::to_string(most) + ")");
  };
  within("slots", slots, 1, 4095);
  within("names", names, 1, 1'048'576);
  const others_run meanwhile;
  return domain::open(name, {.slots = static_cast<int>(slots),
                             .names = static_cast<std::uint32_t>(names),
                             .mode = static_cast<unsigned>(mode),
                             .group = group});
}

const char* word_for(domain_lock_use::how what) {
  switch (what) {
    case domain_lock_use::how::waits:
      return "waits";
    case domain_lock_use::how::holds:
      return "holds";
    case domain_lock_use::how::shares:
      return "shares";
  }
  return "unknown";
}

/// What a call returns that looks at files, or at all of a domain's.
template <class Call>
auto without_interpreter(Call call) {
  const others_run meanwhile;
  return call();
}

nb::list participants_of(const domain& of) {
  nb::list all;
  for (const domain_slot& each : without_interpreter([&] { return of.participants(); }))
    all.append(nb::make_tuple(each.slot, each.pid, each.thread, each.dead,
                              nb::bytes(each.command.data(), each.command.size()), each.stopped,
                              each.guarded_pid, each.has_foreign_pid));
  return all;
}

nb::list locks_of(const domain& of) {
  nb::list all;
  for (const domain_lock& each : without_interpreter([&] { return of.locks(); })) {
    nb::list uses;
    for (const domain_lock_use& use : each.uses)
      uses.append(nb::make_tuple(
          use.slot, use.pid, use.dead, word_for(use.what), static_cast<double>(use.since_ns) * 1e-9,
          use.stopped, use.guarded_pid, use.unit < 0 ? nb::none() : nb::object(nb::int_(use.unit)),
          use.has_foreign_pid));
    all.append(nb::make_tuple(nb::bytes(each.name.data(), each.name.size()), each.kind,
                              each.parameters, each.token, each.repairs, each.owner_died, uses,
                              each.units));
  }
  return all;
}

nb::list uses_of(const domain& of, const std::string& name) {
  nb::list all;
  for (const domain_use_elsewhere& use : without_interpreter([&] { return of.uses_of(name); }))
    all.append(nb::make_tuple(use.pid, word_for(use.what),
                              static_cast<double>(use.milliseconds) * 1e-3,
                              nb::bytes(use.command.data(), use.command.size()),
                              nb::bytes(use.host.data(), use.host.size()),
                              use.unit < 0 ? nb::none() : nb::object(nb::int_(use.unit)), use.dead,
                              use.stopped, use.has_foreign_pid));
  return all;
}

}  // namespace

void add_domains(nb::module_& to) {
  const domain_options defaults;
  to.attr("default_slots") = defaults.slots;
  to.attr("default_names") = defaults.names;
  to.attr("default_kind") = default_kind;

  using without = nb::call_guard<others_run>;
  nb::class_<domain>(to, "Domain")
      .def("__init__",
           [](domain* self, const std::string& name, std::int64_t slots, std::int64_t names,
              std::int64_t mode, const std::string& group) {
             new (self) domain(open_domain(name, slots, names, mode, group));
           })
      .def_prop_ro("name", &domain::name)
      .def_prop_ro("slots", [](const domain& self) { return self.options().slots; })
      .def_prop_ro("names", [](const domain& self) { return self.options().names; })
      .def_prop_ro("mode", [](const domain& self) { return self.options().mode; })
      .def_prop_ro("group", [](const domain& self) { return self.options().group; })
      .def_prop_ro("path", &domain::path)
      .def("still_valid", &domain::still_valid)
      .def("cut_off_for", [](const domain& self) { return seconds_of(self.cut_off_for()); })
      .def("has_agent", &domain::has_agent)
      .def("participants", &participants_of)
      .def("locks", &locks_of)
      .def("uses_of", &uses_of)
      .def("count", &domain::names)
      .def(
          "forget", [](domain& self, const std::string& name) { return self.remove_lock(name); },
          without())
      .def("sweep", &domain::sweep, without());
  to.def(
      "attach", [](const std::string& name, unsigned mode) { return domain::attach(name, mode); },
      without());
  to.def(
      "remove",
      [](const std::string& name, bool force, unsigned mode) {
        return domain::remove(name, force, mode);
      },
      without());
  to.def("list", &domain::list, without());
}

}  // namespace lockflight::python

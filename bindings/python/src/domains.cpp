#include "domains.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <vector>

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

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

/// The result of a call that reads files, or all of a domain, while other threads run.
template <class Call>
auto without_interpreter(Call call) {
  const others_run meanwhile;
  return call();
}

/// The names are those of the data classes of Python, which take from it what they have.
template <class Who>
nb::dict described(const Who& who) {
  nb::dict of;
  of["slot"] = who.slot;
  of["pid"] = who.pid;
  of["guarded_pid"] = who.guarded_pid;
  of["dead"] = who.dead;
  of["stopped"] = who.stopped;
  of["has_foreign_pid"] = who.has_foreign_pid;
  of["command"] = bytes_of(who.command);
  return of;
}

nb::list participants_of(const domain& of) {
  nb::list all;
  for (const domain_slot& each : without_interpreter([&] { return of.participants(); })) {
    nb::dict one = described(each);
    one["thread"] = each.thread;
    all.append(one);
  }
  return all;
}

nb::list described_users(const std::vector<lock_user>& users) {
  nb::list all;
  for (const lock_user& each : users) {
    nb::dict one = described(each);
    one["host"] = bytes_of(each.host);
    one["what"] = each.use();
    one["unit"] = each.unit < 0 ? nb::none() : nb::object(nb::int_(each.unit));
    one["units_held"] = nb::tuple(nb::cast(each.units_held));
    one["seconds"] = static_cast<double>(each.for_ns) * 1e-9;
    one["ends_in"] =
        each.ending.why == end_reason::none
            ? nb::none()
            : nb::object(nb::float_(static_cast<double>(each.ending.in.count()) * 1e-9));
    one["note"] = bytes_of(each.note);
    all.append(one);
  }
  return all;
}

nb::list locks_of(const domain& of) {
  nb::list all;
  for (const domain_lock& each : without_interpreter([&] { return of.locks(); })) {
    nb::dict one;
    one["name"] = bytes_of(each.name);
    one["kind"] = each.kind;
    one["parameters"] = each.parameters;
    one["token"] = each.token;
    one["repairs"] = each.repairs;
    one["owner_died"] = each.owner_died;
    one["units"] = each.units;
    one["uses"] = described_users(each.users);
    all.append(one);
  }
  return all;
}

/// With what silence_text() says of the hosts that did not answer in that time.
nb::tuple users_of(const domain& of, const std::string& name, double seconds) {
  std::vector<std::string> silent;
  const std::chrono::milliseconds at_most(static_cast<std::int64_t>(seconds * 1e3));
  const auto users = without_interpreter([&] { return of.users_of(name, &silent, at_most); });
  return nb::make_tuple(described_users(users), silence_text(silent));
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
      .def("users_of", &users_of, nb::arg("name"), nb::arg("seconds"))
      .def("count", &domain::names)
      .def("set_units",
           [](domain& self, const std::string& name, int count, const std::vector<int>& numbers) {
             const others_run meanwhile;
             self.set_units(name, {.count = count, .numbers = numbers});
           })
      .def("units_of",
           [](const domain& self, const std::string& name) {
             const auto found = without_interpreter([&] { return self.units_of(name); });
             return nb::tuple(nb::cast(found.numbers));
           })
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
  to.def("warning_before_open", &domain::warning_before_open, without());
}

}  // namespace lockflight::python

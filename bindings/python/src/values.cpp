#include "values.hpp"

#include <cmath>
#include <string_view>

#include "lockflight/named_control.hpp"

namespace nb = nanobind;

namespace lockflight::python {
namespace {

/// Calls `what` with this thread's handle of the lock. The handle gives up the interpreter when it
/// begins to wait for others.
template <class What>
auto with_handle(const handle_object& of, What what) {
  const auto& one = of.parts().front().of;
  named_handle& mine = *my_entry(one).handle;
  const call_in_progress call(*one);
  return what(mine);
}

/// Seconds, or None: for ever.
limit limit_of(const nb::object& seconds) {
  if (seconds.is_none()) return limit::for_ever();
  return limit::of_ns(static_cast<std::uint64_t>(std::ceil(nb::cast<double>(seconds) * 1e9)));
}

std::string_view text_of(const nb::bytes& value) { return {value.c_str(), value.size()}; }

nb::tuple shown(const published_value& value) {
  return nb::make_tuple(nb::bytes(value.bytes.data(), value.bytes.size()), value.token,
                        value.until == lasts::with_hold);
}

published_value value_from(const nb::tuple& shown) {
  const auto bytes = nb::cast<nb::bytes>(shown[0]);
  return {std::string(text_of(bytes)), nb::cast<std::uint64_t>(shown[1]),
          nb::cast<bool>(shown[2]) ? lasts::with_hold : lasts::with_name};
}

}  // namespace

void publish(const handle_object& of, const nb::bytes& value, bool lasts_with_hold) {
  with_handle(of, [&](named_handle& mine) {
    mine.publish(text_of(value), lasts_with_hold ? lasts::with_hold : lasts::with_name);
  });
}

void withdraw(const handle_object& of) {
  constexpr limit etcd_answers_within = limit::of_ns(1'000'000'000);
  with_handle(of, [](named_handle& mine) {
    static_cast<void>(named_control(mine).withdraw(etcd_answers_within));
  });
}

nb::tuple published(const handle_object& of) {
  return shown(with_handle(of, [](const named_handle& mine) { return mine.published(); }));
}

nb::tuple await_published(const handle_object& of, const nb::tuple& seen,
                          const nb::object& seconds) {
  const limit patience = limit_of(seconds);
  const published_value before = value_from(seen);
  return shown(
      with_handle(of, [&](named_handle& mine) { return mine.await_published(before, patience); }));
}

nb::object await_published_unless(const handle_object& of, cancellation& by,
                                  const nb::tuple& seen) {
  const cancellable meanwhile(by, of.parts());
  try {
    return await_published(of, seen, nb::none());
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::interrupted || !by.is_cancelled()) throw;
    return nb::none();
  }
}

bool makes_way(const handle_object& of, lockflight::detail::precedence& of_candidate,
               const nb::bytes& own_value, const nb::object& seconds) {
  const domain& in = of.parts().front().of->in;
  const limit patience = limit_of(seconds);
  return with_handle(of, [&](named_handle& mine) {
    return of_candidate.makes_way(in, mine, text_of(own_value), patience);
  });
}

void prefer(const handle_object& of, const nb::bytes& value) {
  with_handle(of, [&](named_handle& mine) {
    lockflight::detail::precedence::prefer(mine, text_of(value));
  });
}

void hide_priority(const handle_object& of) {
  if (of.parts().front().of->priority == 0) return;
  with_handle(of, [](named_handle& mine) { named_control(mine).set_priority(0); });
}

std::uint64_t done_until(const handle_object& of) {
  return with_handle(of, [](const named_handle& mine) { return mine.done_until(); });
}

void set_done_until(const handle_object& of, std::uint64_t seconds) {
  with_handle(of, [&](named_handle& mine) { mine.set_done_until(seconds); });
}

}  // namespace lockflight::python

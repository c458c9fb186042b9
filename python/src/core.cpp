// The part of the Python package that is not Python: named locks with a handle for each thread.
//
// A handle of lockflight::named_lock belongs to one thread; a Lock of Python is used by all threads
// of a process. So a Lock is a name, and each thread has a table of its own handles. Handles made
// before a fork are of no use to the child: its table starts empty.
//
// A call keeps the interpreter until it begins to wait: to give it up and take it again takes as
// long as to acquire a free lock, and a thousand times as long where another thread computes.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockflight/domain.hpp"

namespace nb = nanobind;

namespace lockflight::python {
namespace {

// ---- errors ----

PyObject* domain_error_type = nullptr;
PyObject* owner_died_type = nullptr;

const char* word_for(domain_error::reason why) {
  using reason = domain_error::reason;
  switch (why) {
    case reason::invalid:
      return "invalid";
    case reason::missing:
      return "missing";
    case reason::disagrees:
      return "disagrees";
    case reason::full:
      return "full";
    case reason::damaged:
      return "damaged";
    case reason::removed:
      return "removed";
    case reason::not_held:
      return "not_held";
    case reason::held:
      return "held";
    case reason::wrong_thread:
      return "wrong_thread";
    case reason::interrupted:
      return "interrupted";
    case reason::system:
      return "system";
  }
  return "unknown";
}

void raise_domain_error(const domain_error& e) {
  using reason = domain_error::reason;
  if (e.why == reason::invalid || e.why == reason::disagrees) {
    PyErr_SetString(PyExc_ValueError, e.what());
    return;
  }
  if (e.why == reason::system) {
    PyErr_SetString(PyExc_OSError, e.what());
    return;
  }
  // By CPython's own calls: this is called where no exception of C++ may leave.
  PyObject* const error = PyObject_CallFunction(domain_error_type, "s", e.what());
  PyObject* const why = PyUnicode_FromString(word_for(e.why));
  if (error != nullptr && why != nullptr && PyObject_SetAttrString(error, "reason", why) == 0)
    PyErr_SetObject(domain_error_type, error);
  Py_XDECREF(why);
  Py_XDECREF(error);
}

[[noreturn]] void refuse(PyObject* type, const std::string& what) {
  PyErr_SetString(type, what.c_str());
  throw nb::python_error();
}

// ---- one Lock: what all threads share, and the handles of each ----

/// Counts the forks that led to this process, so that a child knows its parent's handles.
std::atomic<std::uint64_t> forks{0};

struct recipe {
  domain in;
  std::string name;
  named_lock_options what;
  bool raises = false;
};

struct entry {
  std::weak_ptr<const recipe> of;
  std::unique_ptr<named_lock> handle;
  bool used = false;  // the slot is taken, and the lock is looked up
};

// Read at every acquire and release: so without a call, in a shared library too.
struct handle_table;
[[gnu::tls_model("initial-exec")]] constinit thread_local handle_table* table = nullptr;

/// A thread's handles by the identity of what they were made for. An identity is not used again as
/// long as its entry is there, since the entry has a weak pointer to it.
struct handle_table {
  std::uint64_t forks_at_creation = forks.load(std::memory_order_relaxed);
  std::unordered_map<const recipe*, entry> entries;
  std::size_t sweep_at = 64;
  const recipe* last = nullptr;
  entry* last_entry = nullptr;
  /// What this thread held when a fork made the process.
  std::vector<std::weak_ptr<const recipe>> held_by_parent;

  handle_table() = default;
  handle_table(const handle_table&) = delete;
  handle_table& operator=(const handle_table&) = delete;
  ~handle_table() { table = nullptr; }

  /// Drops what Locks that are gone have left.
  void sweep() {
    last = nullptr;
    std::erase_if(entries, [](const auto& each) { return each.second.of.expired(); });
    sweep_at = std::max<std::size_t>(64, 2 * entries.size());
  }
};

// ---- waiting ----

using nanoseconds = std::uint64_t;
constexpr nanoseconds for_ever = UINT64_MAX;

bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// Gives up the interpreter, if it is told to, until its end. When the process ends Python does not
/// give the interpreter back: before 3.14 it ends the thread that asks for it, by unwinding.
class interpreter_for_others {
 public:
  interpreter_for_others() = default;
  interpreter_for_others(const interpreter_for_others&) = delete;
  interpreter_for_others& operator=(const interpreter_for_others&) = delete;
  ~interpreter_for_others() noexcept(false) {
    if (ours_ == nullptr) [[likely]]
      return;
    while (interpreter_ends()) pause();
    PyEval_RestoreThread(ours_);
  }
  void give_up() {
    if (ours_ == nullptr) ours_ = PyEval_SaveThread();
  }

 private:
  PyThreadState* ours_ = nullptr;
};

/// The same from the beginning.
class others_run : interpreter_for_others {
 public:
  others_run() { give_up(); }
};

/// An acquire or a release of this thread. In the middle of it handlers of signals may run.
class call_in_progress {
 public:
  explicit call_in_progress(const recipe& of);
  call_in_progress(const call_in_progress&) = delete;
  call_in_progress& operator=(const call_in_progress&) = delete;
  ~call_in_progress() noexcept(false);

  void give_up_interpreter() { interpreter_.give_up(); }

 private:
  [[noreturn, gnu::noinline]] static void refuse_nested(const recipe& of);

  const recipe& of_;
  interpreter_for_others interpreter_;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local call_in_progress* present_call = nullptr;

call_in_progress::call_in_progress(const recipe& of) : of_(of) {
  if (present_call != nullptr) [[unlikely]]
    refuse_nested(of);
  present_call = this;
}
call_in_progress::~call_in_progress() noexcept(false) { present_call = nullptr; }
void call_in_progress::refuse_nested(const recipe& of) {
  throw domain_error(domain_error::reason::wrong_thread,
                     "lock '" + of.name + "' in a handler of a signal, during a wait for lock '" +
                         present_call->of_.name +
                         "' (accepted: a handler that raises, or that sets a flag)");
}

/// Ends an acquire that a task of asyncio does not want any more. Any thread may cancel.
class cancellation {
 public:
  void cancel() {
    const std::lock_guard hold(mutex_);
    cancelled_ = true;
    if (waits_ != nullptr) waits_->ask_now();
  }
  [[nodiscard]] bool is_cancelled() const {
    // Relaxed: whoever reads it too early reads it again.
    return cancelled_.load(std::memory_order_relaxed);
  }
  /// The handle of the acquire, while it is there.
  void set_waiting(named_lock* waits) {
    const std::lock_guard hold(mutex_);
    waits_ = waits;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> cancelled_{false};
  named_lock* waits_ = nullptr;
};

/// What ends the acquire of this thread, or null.
thread_local const cancellation* ends_acquire = nullptr;

/// Whether Python runs signal handlers in the calling thread.
bool takes_signals() { return getpid() == gettid(); }

/// Whether a wait of this thread is over. A handler of Python may throw, which ends the wait too.
bool is_interrupted() {
  if (ends_acquire != nullptr) return ends_acquire->is_cancelled();
  if (!takes_signals()) return false;
  const nb::gil_scoped_acquire python;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  return false;
}

void this_thread_waits() {
  if (present_call != nullptr) present_call->give_up_interpreter();
}

[[gnu::noinline]] void make_table() {
  static thread_local std::unique_ptr<handle_table> owner;  // ends with the thread
  auto made = std::make_unique<handle_table>();
  if (owner != nullptr) {  // the parent's
    made->held_by_parent = owner->held_by_parent;
    for (const auto& [identity, each] : owner->entries)
      if (each.handle->is_held()) made->held_by_parent.push_back(each.of);
  }
  call_before_waits(&this_thread_waits);
  // The handles of the parent are dropped: their destructors do nothing in a child.
  owner = std::move(made);
  table = owner.get();
}

handle_table& my_table() {
  if (table == nullptr || table->forks_at_creation != forks.load(std::memory_order_relaxed))
    make_table();
  return *table;
}

[[nodiscard]] std::unique_ptr<named_lock> make_handle(const recipe& of) {
  const others_run meanwhile;  // looks the lock up
  auto made = std::make_unique<named_lock>(of.in, of.name, of.what);
  made->interrupt_with(&is_interrupted);
  return made;
}

entry& my_entry(const std::shared_ptr<const recipe>& of) {
  handle_table& mine = my_table();
  if (mine.last == of.get()) return *mine.last_entry;
  auto found = mine.entries.find(of.get());
  if (found == mine.entries.end()) {
    if (mine.entries.size() >= mine.sweep_at) mine.sweep();
    found = mine.entries.emplace(of.get(), entry{of, make_handle(*of)}).first;
  }
  mine.last = found->first;
  mine.last_entry = &found->second;
  return found->second;
}
named_lock& my_handle(const std::shared_ptr<const recipe>& of) { return *my_entry(of).handle; }

/// This thread's handle, if it has one.
named_lock* known_handle(const std::shared_ptr<const recipe>& of) {
  handle_table& mine = my_table();
  const auto found = mine.entries.find(of.get());
  return found != mine.entries.end() ? found->second.handle.get() : nullptr;
}

/// Whether this process was forked in the middle of a hold, which is the parent's. Said once.
bool was_held_by_parent(const std::shared_ptr<const recipe>& of) {
  auto& held = my_table().held_by_parent;
  const auto found =
      std::find_if(held.begin(), held.end(), [&](const auto& each) { return each.lock() == of; });
  if (found == held.end()) return false;
  held.erase(found);
  return true;
}

struct exclusively {
  static void check(const named_lock&) {}
  static bool attempt(named_lock& of) { return of.try_lock(); }
  static bool within(named_lock& of, nanoseconds patience) { return of.try_lock_within(patience); }
  static void wait(named_lock& of) { of.lock(); }
  static void release(named_lock& of) { of.unlock(); }
};
struct with_others {
  static void check(const named_lock& of) {
    if (!of.can_share())
      throw domain_error(domain_error::reason::invalid,
                         "lock '" + of.name() +
                             "': readers do not share it (accepted: a kind with readers, such as "
                             "flight-rw)");
  }
  static bool attempt(named_lock& of) { return of.try_lock_shared(); }
  static bool within(named_lock& of, nanoseconds patience) {
    return of.try_lock_shared_within(patience);
  }
  static void wait(named_lock& of) { of.lock_shared(); }
  static void release(named_lock& of) { of.unlock_shared(); }
};

template <class How>
bool acquire(entry& mine, nanoseconds patience, call_in_progress& call) {
  if (!mine.used) [[unlikely]] {  // files may have to be opened and made
    call.give_up_interpreter();
    mine.used = true;
  }
  if (patience == for_ever) return How::wait(*mine.handle), true;
  return patience == 0 ? How::attempt(*mine.handle) : How::within(*mine.handle, patience);
}

/// What `timeout` of an acquire means, as threading.Lock has it.
nanoseconds patience_of(bool blocking, nb::handle timeout) {
  double seconds = -1;
  if (timeout.is_valid() && !timeout.is_none()) {
    seconds = PyFloat_AsDouble(timeout.ptr());
    if (seconds == -1 && PyErr_Occurred()) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
      PyErr_Clear();
      refuse(PyExc_TypeError, "timeout " + std::string(nb::repr(timeout).c_str()) +
                                  " (accepted: a number of seconds, or -1 to wait for ever)");
    }
  }
  if (seconds == -1) return blocking ? for_ever : 0;
  const auto refuse_number = [&](const char* accepted) {
    refuse(PyExc_ValueError,
           "timeout " + std::string(nb::repr(timeout).c_str()) + " (accepted: " + accepted + ")");
  };
  if (!blocking) refuse_number("none with blocking=False");
  constexpr double most = 9e9;
  if (!(seconds >= 0) || seconds > most) refuse_number("0 to 9e9 seconds, or -1 to wait for ever");
  return static_cast<nanoseconds>(std::ceil(seconds * 1e9));
}

// ---- what Python sees ----

struct lock_object {
  std::shared_ptr<const recipe> of;

  lock_object(const domain& in, std::string name, std::string kind, std::string parameters,
              bool raises)
      : of(std::make_shared<const recipe>(
            recipe{in,
                   std::move(name),
                   {.kind = std::move(kind), .parameters = std::move(parameters)},
                   raises})) {
    my_entry(of);  // what is wrong with the name or the kind is said now
  }
  lock_object(const lock_object&) = delete;
  lock_object& operator=(const lock_object&) = delete;
  ~lock_object() {
    if (present_call != nullptr) return;  // the thread's table drops the handle later
    handle_table& mine = my_table();
    if (mine.last == of.get()) mine.last = nullptr;
    mine.entries.erase(of.get());
  }

  template <class How>
  bool take(nanoseconds patience) const {
    entry& mine = my_entry(of);
    How::check(*mine.handle);
    {
      call_in_progress call(*of);
      if (!acquire<How>(mine, patience, call)) return false;
    }
    if (of->raises && mine.handle->owner_died()) {
      release<How>();  // an acquire that raises does not hold the lock
      refuse(owner_died_type,
             "lock '" + of->name +
                 "': a holder died, and what the lock guards may be half written (accepted: a Lock "
                 "with on_owner_died='tell', and mark_consistent)");
    }
    return true;
  }
  /// For a task: false if it was cancelled before.
  template <class How>
  bool take_unless(cancellation& cancelled) const {
    struct meanwhile {
      meanwhile(cancellation& c, named_lock& waits) : by(c) {
        by.set_waiting(&waits);
        ends_acquire = &by;
      }
      ~meanwhile() {
        ends_acquire = nullptr;
        by.set_waiting(nullptr);
      }
      cancellation& by;
    } const ended(cancelled, my_handle(of));
    try {
      return !cancelled.is_cancelled() && take<How>(for_ever);
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::interrupted || !cancelled.is_cancelled()) throw;
      return false;
    }
  }
  template <class How>
  void release() const {
    named_lock& mine = my_handle(of);
    const call_in_progress call(*of);
    How::release(mine);
  }
  /// At the end of a `with`, which a fork may have left with nothing to release.
  template <class How>
  void leave() const {
    try {
      release<How>();
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::not_held || !was_held_by_parent(of)) throw;
    }
  }

  [[nodiscard]] bool held() const {
    const named_lock* const mine = known_handle(of);
    return mine != nullptr && mine->is_held();
  }
  [[nodiscard]] bool owner_died() const {
    const named_lock* const mine = known_handle(of);
    return mine != nullptr && mine->is_held() && mine->owner_died();
  }
  [[nodiscard]] std::uint64_t token() const {
    const named_lock* const mine = known_handle(of);
    return mine != nullptr ? mine->token() : 0;
  }
  /// Of the domain that this thread's handle uses, else of the Lock's.
  [[nodiscard]] bool still_valid() const {
    const named_lock* const mine = known_handle(of);
    return mine != nullptr && mine->is_held() ? mine->still_valid() : of->in.still_valid();
  }
  [[nodiscard]] bool locked() const {
    if (held()) return true;
    const others_run meanwhile;
    for (const domain_lock& each : of->in.locks()) {
      if (each.name != of->name) continue;
      return std::any_of(each.uses.begin(), each.uses.end(), [](const domain_lock_use& use) {
        return !use.dead && use.what != domain_lock_use::how::waits;
      });
    }
    return false;
  }
};

// ---- what a program calls all the time ----

// These are functions of CPython, not of nanobind: its dispatch of a call with default arguments
// takes longer than the lock.

/// Does `what` with the Lock. An exception of C++ becomes Python's.
template <class What>
PyObject* with_lock(PyObject* self, What what) {
  try {
    if (!nb::inst_ready(self)) refuse(PyExc_TypeError, "Lock.__init__ has not been called");
    return what(*nb::inst_ptr<lock_object>(self)).release().ptr();
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const domain_error& e) {
    raise_domain_error(e);
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

template <class How>
PyObject* call_acquire(PyObject* self, PyObject* args, PyObject* named) {
  return with_lock(self, [&](const lock_object& lock) -> nb::object {
    nanoseconds patience = for_ever;
    if (named != nullptr || PyTuple_GET_SIZE(args) != 0) {
      static const char* const names[] = {"blocking", "timeout", nullptr};
      int blocking = 1;
      PyObject* timeout = nullptr;
      if (PyArg_ParseTupleAndKeywords(args, named, "|pO:acquire", const_cast<char**>(names),
                                      &blocking, &timeout) == 0)
        throw nb::python_error();
      patience = patience_of(blocking != 0, timeout);
    }
    return nb::bool_(lock.take<How>(patience));
  });
}
template <class How>
PyObject* call_release(PyObject* self, PyObject*) {
  return with_lock(self, [](const lock_object& lock) {
    lock.release<How>();
    return nb::none();
  });
}
template <class How>
PyObject* call_leave(PyObject* self) {
  return with_lock(self, [](const lock_object& lock) {
    lock.leave<How>();
    return nb::none();
  });
}
PyObject* call_enter(PyObject* self, PyObject*) {
  return with_lock(self, [self](const lock_object& lock) {
    lock.take<exclusively>(for_ever);
    return nb::borrow(self);
  });
}
PyObject* call_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  return call_leave<exclusively>(self);
}
PyObject* call_exit_shared(PyObject* self, PyObject*) { return call_leave<with_others>(self); }

/// A table of CPython has functions of several types.
template <class Function>
PyCFunction method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef lock_methods[] = {
    {"acquire", method(&call_acquire<exclusively>), METH_VARARGS | METH_KEYWORDS,
     "acquire($self, /, blocking=True, timeout=-1)\n--\n\n"
     "Waits for the lock, at most `timeout` seconds unless that is -1. Whether it is held now."},
    {"release", method(&call_release<exclusively>), METH_NOARGS,
     "release($self, /)\n--\n\nBy the thread that acquired; else DomainError."},
    {"acquire_shared", method(&call_acquire<with_others>), METH_VARARGS | METH_KEYWORDS,
     "acquire_shared($self, /, blocking=True, timeout=-1)\n--\n\nAs acquire, beside other "
     "readers."},
    {"release_shared", method(&call_release<with_others>), METH_NOARGS,
     "release_shared($self, /)\n--\n\nBy the thread that acquired; else DomainError."},
    {"__enter__", method(&call_enter), METH_NOARGS, nullptr},
    {"__exit__", method(&call_exit), METH_FASTCALL, nullptr},
    {"_exit_shared", method(&call_exit_shared), METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
const PyType_Slot lock_slots[] = {{Py_tp_methods, lock_methods}, {0, nullptr}};

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
                              each.guarded_pid));
  return all;
}

nb::list locks_of(const domain& of) {
  nb::list all;
  for (const domain_lock& each : without_interpreter([&] { return of.locks(); })) {
    nb::list uses;
    for (const domain_lock_use& use : each.uses)
      uses.append(nb::make_tuple(use.slot, use.pid, use.dead, word_for(use.what),
                                 static_cast<double>(use.since_ns) * 1e-9, use.stopped,
                                 use.guarded_pid));
    all.append(nb::make_tuple(nb::bytes(each.name.data(), each.name.size()), each.kind,
                              each.parameters, each.token, each.repairs, each.owner_died, uses));
  }
  return all;
}

}  // namespace
}  // namespace lockflight::python

NB_MODULE(_core, m) {
  // A worker thread of a task may still have a lock when the interpreter ends. The kernel frees it.
  nb::set_leak_warnings(false);
  using namespace lockflight;
  using namespace lockflight::python;
  using namespace nb::literals;

  pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    present_call = nullptr;  // the child does not go back to what a handler has interrupted
  });

  domain_error_type = PyErr_NewExceptionWithDoc(
      "lockflight.DomainError",
      "A domain or a lock cannot do that; `reason` says why in a word: missing, full, damaged,\n"
      "removed, not_held, held, wrong_thread or interrupted.",
      PyExc_RuntimeError, nullptr);
  owner_died_type = PyErr_NewExceptionWithDoc(
      "lockflight.OwnerDied",
      "A holder died while it held the lock. Raised by an acquire of a lock with\n"
      "on_owner_died='raise', which then does not hold it.",
      PyExc_RuntimeError, nullptr);
  if (domain_error_type == nullptr || owner_died_type == nullptr) throw nb::python_error();
  m.attr("DomainError") = nb::handle(domain_error_type);
  m.attr("OwnerDied") = nb::handle(owner_died_type);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const domain_error& e) {
      raise_domain_error(e);
    }
  });

  const domain_options defaults;
  m.attr("default_slots") = defaults.slots;
  m.attr("default_names") = defaults.names;
  m.attr("default_kind") = default_kind;

  using without = nb::call_guard<others_run>;
  nb::class_<domain>(m, "Domain")
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
      .def("participants", &participants_of)
      .def("locks", &locks_of)
      .def("count", &domain::names)
      .def(
          "forget", [](domain& self, const std::string& name) { return self.remove_lock(name); },
          without())
      .def("sweep", &domain::sweep, without());
  m.def(
      "attach", [](const std::string& name, unsigned mode) { return domain::attach(name, mode); },
      without());
  m.def(
      "remove",
      [](const std::string& name, bool force, unsigned mode) {
        return domain::remove(name, force, mode);
      },
      without());
  m.def("list", &domain::list, without());

  nb::class_<cancellation>(m, "Cancellation")
      .def(nb::init<>())
      .def("cancel", &cancellation::cancel);
  nb::class_<lock_object>(m, "Lock", nb::type_slots(lock_slots))
      .def(nb::init<const domain&, std::string, std::string, std::string, bool>())
      .def("acquire_unless", &lock_object::take_unless<exclusively>)
      .def("acquire_shared_unless", &lock_object::take_unless<with_others>)
      .def("mark_consistent", [](const lock_object& self) { my_handle(self.of).mark_consistent(); })
      .def("locked", &lock_object::locked)
      .def("still_valid", &lock_object::still_valid)
      .def_prop_ro("held", &lock_object::held)
      .def_prop_ro("owner_died", &lock_object::owner_died)
      .def_prop_ro("token", &lock_object::token);
}

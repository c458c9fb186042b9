#include "domain/attachment.hpp"
#include "domain/directory.hpp"
#include "lockflight/domain.hpp"

namespace lockflight {
namespace detail {

class named_lock_impl {
 public:
  enum class mode : std::uint8_t { none, exclusive, shared };

  named_lock_impl(std::shared_ptr<domain_file> file, std::string_view name,
                  const named_lock_options& what)
      : file_(std::move(file)),
        name_(name),
        raises_(what.death == named_lock_options::on_death::raise) {
    check_lock_name(name);
    kind_ = &kind_named(what.kind);
    canonical_ = kind_->canonical(parse_parameters(what.parameters));
    file_->check_size();
    // A caller that asks for what exists otherwise learns it here.
    find();
  }
  ~named_lock_impl() {
    if (held_ == mode::none || !me_->is_ours()) return;
    try {
      if (held_ == mode::exclusive) lock_->abandon();
      release();
    } catch (...) {  // the domain is damaged, and with it whatever was guarded
    }
  }
  named_lock_impl(const named_lock_impl&) = delete;
  named_lock_impl& operator=(const named_lock_impl&) = delete;

  template <class Take>
  bool acquire(mode as, Take take) {
    prepare();
    while (true) {
      const bool has = attempt(take);
      if (is_current()) {
        if (!has) return false;
        held_ = as;
        break;
      }
      // Removed meanwhile; its words may have become another lock's.
      if (has) as == mode::exclusive ? lock_->unlock() : lock_->unlock_shared();
      renew();
    }
    if (raises_ && lock_->owner_died())
      throw owner_died_error("lock " + shown(name_) + ": a holder died");
    return true;
  }
  template <class Take>
  [[gnu::always_inline]] bool attempt(Take take) {
    try {
      return take(*lock_);
    } catch (const std::length_error&) {
      throw domain_error(domain_error::reason::full,
                         "lock " + shown(name_) + ": this thread holds " + std::to_string(records) +
                             " locks already, which is the most");
    }
  }
  void unlock(mode as) {
    if (held_ != as || !me_->is_ours()) not_held(as);
    release();
  }
  [[gnu::always_inline]] void need(bool can, const char* what, const char* accepted) const {
    if (!can) [[unlikely]]
      cannot(what, accepted);
  }
  [[noreturn, gnu::noinline]] void cannot(const char* what, const char* accepted) const {
    throw domain_error(domain_error::reason::invalid, "lock " + shown(name_) + ", a " +
                                                          std::string(kind_->name) + ": " + what +
                                                          " (accepted for that: " + accepted + ")");
  }
  void need_exclusive() const {
    if (held_ == mode::exclusive && me_->is_ours()) return;
    not_held(mode::exclusive);
  }

  [[nodiscard]] const domain_kind& kind() const { return *kind_; }
  [[nodiscard]] any_robust* lock() const { return lock_.get(); }
  [[nodiscard]] std::uint64_t token() const {
    const std::uint64_t own = lock_ ? lock_->token() : 0;
    return own != 0 ? found_.tokens_before + own : token_before_;
  }
  [[nodiscard]] mode held() const { return held_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void release() {
    std::exchange(held_, mode::none) == mode::exclusive ? lock_->unlock() : lock_->unlock_shared();
  }

  void find() {
    found_ = look_up(*file_, name_, *kind_, canonical_);
    serial_ = &file_->word(0, found_.line + serial_beside);
  }
  [[nodiscard]] bool is_current() const {
    // Acquire: what the word says was there before we had the lock.
    return serial_->load(std::memory_order_acquire) == found_.serial;
  }

  [[gnu::always_inline]] void prepare() {
    if (lock_ && me_->is_ours() && held_ == mode::none) [[likely]] {
      if (is_current()) [[likely]]
        return;
      return renew();
    }
    start();
  }
  [[gnu::noinline]] void start() {
    if (me_ && !me_->is_ours())
      throw domain_error(
          domain_error::reason::wrong_thread,
          "lock " + shown(name_) + ": this handle is another thread's, or was before a fork");
    if (held_ != mode::none)
      throw domain_error(domain_error::reason::held,
                         "lock " + shown(name_) + ": this handle holds it already");
    me_ = attach_thread(file_);
    if (!is_current()) return renew();
    lock_ = lock_at(*me_, found_);
  }
  [[gnu::noinline]] void renew() {
    token_before_ = token();
    lock_.reset();
    find();
    lock_ = lock_at(*me_, found_);
  }
  [[noreturn]] void not_held(mode as) const {
    if (me_ && !me_->is_ours())
      throw domain_error(
          domain_error::reason::wrong_thread,
          "lock " + shown(name_) + ": this handle is another thread's, or was before a fork");
    throw domain_error(domain_error::reason::not_held,
                       "lock " + shown(name_) + ": this handle does not hold it " +
                           (as == mode::exclusive ? "exclusively" : "shared"));
  }

  std::shared_ptr<domain_file> file_;
  std::string name_;
  bool raises_;
  const domain_kind* kind_ = nullptr;
  std::string canonical_;
  found_lock found_;
  const std::atomic<rma::word>* serial_ = nullptr;  // of the lock that has these words
  std::shared_ptr<attachment> me_;
  std::unique_ptr<any_robust> lock_;
  mode held_ = mode::none;
  std::uint64_t token_before_ = 0;  // the last one, of a lock that is no more
};

}  // namespace detail

using mode = detail::named_lock_impl::mode;

namespace {
constexpr const char* cannot_leave = "a waiter of this lock cannot leave";
constexpr const char* that_can_leave = "flight, flight-rw";
constexpr const char* cannot_share = "it has no shared holders";
constexpr const char* that_share =
    "flight-rw, fompi-rw, fompi-rw-backoff, rma-rw, mcs-rw-rp, mcs-rw-wp, mcs-rw-fair";
}  // namespace

named_lock::named_lock(const domain& in, std::string_view name, const named_lock_options& what)
    : impl_(std::make_unique<detail::named_lock_impl>(in.file_, name, what)) {}
named_lock::named_lock(named_lock&&) noexcept = default;
named_lock& named_lock::operator=(named_lock&&) noexcept = default;
named_lock::~named_lock() = default;

void named_lock::lock() {
  impl_->acquire(mode::exclusive, [](auto& l) { return l.lock(), true; });
}
bool named_lock::try_lock() {
  impl_->need(impl_->kind().tries, cannot_leave, that_can_leave);
  return impl_->acquire(mode::exclusive, [](auto& l) { return l.try_lock(); });
}
bool named_lock::try_lock_within(std::uint64_t nanoseconds) {
  impl_->need(impl_->kind().times, cannot_leave, that_can_leave);
  return impl_->acquire(mode::exclusive, [=](auto& l) { return l.try_lock_within(nanoseconds); });
}
void named_lock::unlock() { impl_->unlock(mode::exclusive); }
bool named_lock::can_share() const { return impl_->kind().shares; }
void named_lock::lock_shared() {
  impl_->need(impl_->kind().shares, cannot_share, that_share);
  impl_->acquire(mode::shared, [](auto& l) { return l.lock_shared(), true; });
}
bool named_lock::try_lock_shared() {
  impl_->need(impl_->kind().shares, cannot_share, that_share);
  impl_->need(impl_->kind().tries_shared, cannot_leave, that_can_leave);
  return impl_->acquire(mode::shared, [](auto& l) { return l.try_lock_shared(); });
}
bool named_lock::try_lock_shared_within(std::uint64_t nanoseconds) {
  impl_->need(impl_->kind().shares, cannot_share, that_share);
  impl_->need(impl_->kind().times_shared, cannot_leave, "flight-rw");
  return impl_->acquire(mode::shared,
                        [=](auto& l) { return l.try_lock_shared_within(nanoseconds); });
}
void named_lock::unlock_shared() { impl_->unlock(mode::shared); }

std::uint64_t named_lock::token() const { return impl_->token(); }
bool named_lock::owner_died() const { return is_held() && impl_->lock()->owner_died(); }
void named_lock::mark_consistent() {
  impl_->need_exclusive();
  impl_->lock()->mark_consistent();
}
bool named_lock::is_held() const { return impl_->held() != mode::none; }
const std::string& named_lock::name() const { return impl_->name(); }

}  // namespace lockflight

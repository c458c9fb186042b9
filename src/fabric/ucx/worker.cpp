#include "fabric/ucx/worker.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <utility>

#include "fabric/shm/pause.hpp"

namespace lockflight::ucx::detail {
namespace {

bool finds_card() {
  std::error_code none;
  const std::filesystem::directory_iterator cards("/sys/class/infiniband", none);
  return !none && cards != std::filesystem::directory_iterator();
}

/// True if atomics are to be the card's. UCX's own choice, "guess", is the card's where there is
/// one; a program cannot ask it, so the choice is made here.
bool wants_device_atomics(bool has_card) {
  if (const char* const given = std::getenv("UCX_ATOMIC_MODE"); given != nullptr) {
    const std::string_view mode = given;
    if (mode == "device") return true;
    if (mode == "cpu") return false;
  }
  return has_card;
}

std::string no_transport(ucs_status_t status) {
  const char* const chosen = std::getenv("UCX_TLS");
  return std::string("UCX has no transport here: ") + ucs_status_string(status) +
         (chosen != nullptr ? std::string("; UCX_TLS '") + chosen + "'" : "") +
         " (accepted: those that `ucx_info -d` lists)";
}

struct configuration {
  ucp_config_t* is = nullptr;
  configuration() { check(ucp_config_read(nullptr, nullptr, &is), "ucp_config_read"); }
  configuration(const configuration&) = delete;
  configuration& operator=(const configuration&) = delete;
  ~configuration() { ucp_config_release(is); }

  /// Sets an option of UCX, unless the user has set it.
  void prefer(const char* name, const char* value) const {
    if (std::getenv((std::string("UCX_") + name).c_str()) == nullptr)
      check(ucp_config_modify(is, name, value), "ucp_config_modify");
  }
};

/// Sets environment variables of UCX for this object's lifetime, unless the user has set them:
/// UCX's transports read their options from the environment alone.
class meanwhile_set {
 public:
  meanwhile_set(std::initializer_list<std::pair<const char*, const char*>> these) {
    for (const auto& [name, value] : these) {
      if (std::getenv(name) != nullptr) continue;
      setenv(name, value, 0);
      ours_.push_back(name);
    }
  }
  ~meanwhile_set() {
    for (const char* name : ours_) unsetenv(name);
  }
  meanwhile_set(const meanwhile_set&) = delete;
  meanwhile_set& operator=(const meanwhile_set&) = delete;

 private:
  std::vector<const char*> ours_;
};

}  // namespace

worker::worker(bool wakes) : has_card_(finds_card()), by_cpu_(!wants_device_atomics(has_card_)) {
  // UCX writes 4 MiB of buffers for each of its two kinds of shared memory, which takes most of a
  // process's start. Our messages are words; there must be room for an address of UCX, and for as
  // many buffers at once as there are places in a queue.
  const meanwhile_set small_buffers{{"UCX_POSIX_SEG_SIZE", "2k"},
                                    {"UCX_SYSV_SEG_SIZE", "2k"},
                                    {"UCX_POSIX_RX_BUFS_GROW", "256"},
                                    {"UCX_SYSV_RX_BUFS_GROW", "256"}};
  const configuration chosen;
  check(ucp_config_modify(chosen.is, "ATOMIC_MODE", by_cpu_ ? "cpu" : "device"),
        "ucp_config_modify");
  chosen.prefer("KEEPALIVE_INTERVAL", "2s");  // UCX's own choice is 20 s
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_AM;
  if (wakes) params.features |= UCP_FEATURE_WAKEUP;
  if (const ucs_status_t status = ucp_init(&params, chosen.is, &context_); status != UCS_OK)
    throw wired::unavailable(no_transport(status));

  ucp_worker_params_t how{};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // Two threads at most, one after the other: see step().
  how.thread_mode = wakes ? UCS_THREAD_MODE_SERIALIZED : UCS_THREAD_MODE_SINGLE;
  if (const ucs_status_t status = ucp_worker_create(context_, &how, &worker_); status != UCS_OK) {
    ucp_cleanup(context_);
    throw wired::unavailable(no_transport(status));
  }
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = message_id;
  handler.cb = on_message;
  handler.arg = this;
  check(ucp_worker_set_am_recv_handler(worker_, &handler), "ucp_worker_set_am_recv_handler");
}

worker::~worker() {
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}

std::string worker::protocol() const {
  return std::string("UCX with the atomics of the ") + (by_cpu_ ? "CPU" : "card");
}

wired::detail::description worker::describe() const {
  const char* const chosen = std::getenv("UCX_TLS");
  return {.library = std::string("UCX ") + ucp_get_version_string(),
          .transports = chosen != nullptr ? chosen : "all that UCX finds (UCX_TLS)",
          .atomics =
              by_cpu_ ? "the CPU's (UCX_ATOMIC_MODE=cpu)" : "the card's (UCX_ATOMIC_MODE=device)"};
}

int worker::events() {
  int descriptor = -1;
  check(ucp_worker_get_efd(worker_, &descriptor), "ucp_worker_get_efd");
  return descriptor;
}

int worker::longest_sleep_ms() {
  constexpr int for_what_has_no_event = 50;
  return ucp_worker_arm(worker_) == UCS_ERR_BUSY ? 0 : for_what_has_no_event;
}

std::string worker::address() const {
  ucp_address_t* at = nullptr;
  std::size_t length = 0;
  check(ucp_worker_get_address(worker_, &at, &length), "ucp_worker_get_address");
  std::string bytes(reinterpret_cast<const char*>(at), length);
  ucp_worker_release_address(worker_, at);
  return bytes;
}

void worker::set_addresses(std::vector<std::string> addresses, int, bool) {
  addresses_ = std::move(addresses);
  endpoints_.resize(addresses_.size(), nullptr);
}

ucp_ep_h worker::endpoint(rma::rank_t to) {
  const auto at = static_cast<std::size_t>(to);
  if (endpoints_[at] != nullptr) return endpoints_[at];
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(addresses_[at].data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  // The handler does nothing: a failed operation returns an error, or the rendezvous reports it.
  params.err_handler = {.cb = [](void*, ucp_ep_h, ucs_status_t) {}, .arg = nullptr};
  ucs_status_t status = ucp_ep_create(worker_, &params, &endpoints_[at]);
  // UCX's shared memory has no such mode. A rank of this host that is gone is noticed all the
  // same: its connection of the rendezvous ends.
  if (status != UCS_OK) {
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    status = ucp_ep_create(worker_, &params, &endpoints_[at]);
  }
  if (status != UCS_OK) {
    endpoints_[at] = nullptr;
    throw wired::unavailable("UCX cannot reach rank " + std::to_string(to) + ": " +
                             ucs_status_string(status) + " (UCX_TLS, UCX_NET_DEVICES)");
  }
  return endpoints_[at];
}

std::size_t worker::connections() const {
  return endpoints_.size() - static_cast<std::size_t>(std::ranges::count(endpoints_, nullptr));
}

void worker::close_connections() {
  constexpr std::uint64_t longest_close_ns = 2'000'000'000;
  for (ucp_ep_h& e : endpoints_) {
    if (e == nullptr) continue;
    ucp_request_param_t param{};
    void* const request = ucp_ep_close_nbx(e, &param);
    e = nullptr;
    if (!UCS_PTR_IS_PTR(request)) continue;
    // A rank that is gone by now answers nothing.
    const std::uint64_t end = shm::detail::ns_from_now(longest_close_ns);
    while (ucp_request_check_status(request) == UCS_INPROGRESS && now_ns() < end)
      ucp_worker_progress(worker_);
    ucp_request_free(request);
  }
}

ucs_status_t worker::on_message(void* its, const void* header, std::size_t length, void*,
                                std::size_t, const ucp_am_recv_param_t*) {
  wired::detail::envelope got;
  if (length == sizeof got) {
    std::memcpy(&got, header, sizeof got);
    static_cast<worker*>(its)->inbox().push_back(got);
  }
  return UCS_OK;
}

namespace {

/// A rank's cells as UCX knows them.
class registered_cells final : public wired::detail::exposure {
 public:
  registered_cells(worker& of, std::byte* cells, std::size_t bytes) : of_(of), cells_(cells) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = cells;
    params.length = bytes;
    check(of_.step([&] { return ucp_mem_map(of_.context(), &params, &memory_); }), "ucp_mem_map");
  }
  ~registered_cells() override {
    of_.step([&] { return ucp_mem_unmap(of_.context(), memory_); });
  }

  /// The address of the cells in this process, and UCX's packed key.
  [[nodiscard]] std::string key() const override {
    void* packed = nullptr;
    std::size_t length = 0;
    check(ucp_rkey_pack(of_.context(), memory_, &packed, &length), "ucp_rkey_pack");
    const auto address = reinterpret_cast<std::uintptr_t>(cells_);
    std::string said(reinterpret_cast<const char*>(&address), sizeof address);
    said.append(static_cast<const char*>(packed), length);
    ucp_rkey_buffer_release(packed);
    return said;
  }

 private:
  worker& of_;
  std::byte* cells_;
  ucp_mem_h memory_ = nullptr;
};

}  // namespace

std::unique_ptr<wired::detail::exposure> worker::expose(std::byte* cells, std::size_t bytes) {
  return std::make_unique<registered_cells>(*this, cells, bytes);
}

}  // namespace lockflight::ucx::detail

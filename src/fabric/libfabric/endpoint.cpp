#include "fabric/libfabric/endpoint.hpp"

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "fabric/libfabric/link.hpp"

namespace lockflight::libfabric::detail {
namespace {

constexpr std::uint32_t api = FI_VERSION(1, 15);
constexpr const char* operations_variable = "LOCKFLIGHT_LIBFABRIC_OPERATIONS";

struct free_info {
  void operator()(fi_info* list) const { fi_freeinfo(list); }
};
using infos = std::unique_ptr<fi_info, free_info>;

/// The providers that have all of these capabilities, the one that libfabric prefers first; null if
/// there is none.
infos providers(std::uint64_t capabilities) {
  const infos hints(fi_allocinfo());
  if (hints == nullptr) return nullptr;
  hints->caps = capabilities;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;  // see `completion`
  hints->ep_attr->type = FI_EP_RDM;
  // Two threads at most, one after the other: see step().
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;  // messages stay in order
  hints->tx_attr->inject_size = sizeof(packet);
  fi_info* found = nullptr;
  fi_getinfo(api, nullptr, nullptr, 0, hints.get(), &found);
  return infos(found);
}

/// The providers that reach other hosts, or if FI_PROVIDER leaves none, those that do not.
infos find(std::uint64_t capabilities) {
  infos anywhere = providers(capabilities | FI_LOCAL_COMM | FI_REMOTE_COMM);
  return anywhere != nullptr ? std::move(anywhere) : providers(capabilities);
}

/// libfabric 1.17 has two providers for TCP, and prefers the one that has a layer above it. `net`,
/// which later versions call `tcp`, needs none and takes four fifths of the time.
infos without_layer(infos found) {
  const auto is = [](const fi_info* i, std::string_view name) {
    return std::string_view(i->fabric_attr->prov_name) == name;
  };
  if (found == nullptr || !is(found.get(), "tcp;ofi_rxm")) return found;
  for (const fi_info* each = found->next; each != nullptr; each = each->next)
    if (is(each, "net") && std::string_view(each->domain_attr->name) == found->domain_attr->name)
      return infos(fi_dupinfo(each));
  return found;
}

/// True if the endpoint has the operations of a link; a provider may say that it has FI_ATOMIC and
/// have none.
bool has_atomics(fid_ep* endpoint) {
  std::size_t count = 0;
  return fi_fetch_atomicvalid(endpoint, FI_UINT64, FI_SUM, &count) == 0 && count > 0 &&
         fi_fetch_atomicvalid(endpoint, FI_UINT64, FI_ATOMIC_WRITE, &count) == 0 && count > 0 &&
         fi_compare_atomicvalid(endpoint, FI_UINT64, FI_CSWAP, &count) == 0 && count > 0;
}

/// True if a card does a provider's atomic operations. libfabric does not say so. In the sources of
/// its providers it is so of Slingshot's alone; the others have the target's software do them.
bool card_does_atomics(const fi_info& of) {
  return std::string_view(of.fabric_attr->prov_name) == "cxi";
}

[[noreturn]] void no_provider(bool by_messages) {
  const char* const chosen = std::getenv("FI_PROVIDER");
  throw wired::unavailable(
      std::string("libfabric has no provider here with reliable datagrams") +
      (by_messages ? "" : ", FI_RMA and FI_ATOMIC") +
      (chosen != nullptr ? std::string("; FI_PROVIDER '") + chosen + "'" : "") +
      " (accepted: those that `fi_info -t FI_EP_RDM` lists)");
}

}  // namespace

operations_by wanted_operations() {
  const char* const given = std::getenv(operations_variable);
  const std::string_view word = given != nullptr ? given : "auto";
  if (word == "auto") return operations_by::automatic;
  if (word == "provider") return operations_by::provider;
  if (word == "messages") return operations_by::messages;
  throw std::invalid_argument(std::string(operations_variable) + " '" + std::string(word) +
                              "' (accepted: provider, messages, auto)");
}

endpoint::endpoint(operations_by wanted, bool wakes) {
  constexpr std::uint64_t for_messages = FI_MSG;
  constexpr std::uint64_t for_operations = FI_MSG | FI_RMA | FI_ATOMIC;
  if (wanted != operations_by::messages) {
    info_.reset(find(for_operations).release());
    by_messages_ =
        wanted == operations_by::automatic && (info_ == nullptr || !card_does_atomics(*info_));
  }
  if (by_messages_) info_.reset(without_layer(find(for_messages)).release());
  if (info_ == nullptr) no_provider(by_messages_);
  open(*info_, wakes);
}

void endpoint::open(const fi_info& chosen, bool wakes) {
  fi_info* const info = const_cast<fi_info*>(&chosen);  // libfabric only reads it
  fabric_ = made<fid_fabric>(
      "fi_fabric", [&](fid_fabric** to) { return fi_fabric(info->fabric_attr, to, nullptr); });
  domain_ = made<fid_domain>(
      "fi_domain", [&](fid_domain** to) { return fi_domain(fabric_.get(), info, to, nullptr); });
  addresses_known_ = made<fid_av>("fi_av_open", [&](fid_av** to) {
    fi_av_attr how{};
    return fi_av_open(domain_.get(), &how, to, nullptr);
  });
  fi_cq_attr how{};
  how.format = FI_CQ_FORMAT_CONTEXT;
  how.wait_obj = wakes ? FI_WAIT_FD : FI_WAIT_NONE;
  fid_cq* queue = nullptr;
  // A provider may have no descriptor, as shm has none.
  if (!wakes || fi_cq_open(domain_.get(), &how, &queue, nullptr) != 0) {
    how.wait_obj = FI_WAIT_NONE;
    check(fi_cq_open(domain_.get(), &how, &queue, nullptr), "fi_cq_open");
  }
  completions_.reset(queue);
  endpoint_ = made<fid_ep>(
      "fi_endpoint", [&](fid_ep** to) { return fi_endpoint(domain_.get(), info, to, nullptr); });
  check(fi_ep_bind(endpoint_.get(), &addresses_known_->fid, 0), "fi_ep_bind");
  check(fi_ep_bind(endpoint_.get(), &completions_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_enable(endpoint_.get()), "fi_enable");
  if (!by_messages_ && !has_atomics(endpoint_.get())) no_provider(by_messages_);
  constexpr std::size_t enough_receives = 128;
  receives_ = std::vector<receive_slot>(std::min(enough_receives, chosen.rx_attr->size));
  for (receive_slot& each : receives_) {
    each.is_receive = true;
    post_receive(each);
  }
}

endpoint::~endpoint() = default;

std::string endpoint::protocol() const {
  return std::string("libfabric's provider '") + info_->fabric_attr->prov_name + "' with " +
         (by_messages_ ? "messages" : "its own operations");
}

bool endpoint::target_takes_part() const { return by_messages_ || !card_does_atomics(*info_); }

wired::detail::description endpoint::describe() const {
  const std::uint32_t version = fi_version();
  return {.library = "libfabric " + std::to_string(FI_MAJOR(version)) + '.' +
                     std::to_string(FI_MINOR(version)),
          .transports = std::string(info_->fabric_attr->prov_name) + " on " +
                        info_->domain_attr->name + " (FI_PROVIDER)",
          .atomics = std::string(by_messages_ ? "the target's CPU (" : "the provider's (") +
                     operations_variable + (by_messages_ ? "=messages)" : "=provider)")};
}

int endpoint::events() {
  int descriptor = -1;
  return fi_control(&completions_->fid, FI_GETWAIT, &descriptor) == 0 ? descriptor : -1;
}

int endpoint::longest_sleep_ms() {
  constexpr int for_what_has_no_event = 50;
  // A packet that waits for room, or for a connection, has no event. Some providers have none at
  // all.
  if (events() < 0 || queued_count_ > 0 || !unposted_.empty()) return 1;
  fid* waited[] = {&completions_->fid};
  return fi_trywait(fabric_.get(), waited, 1) == -FI_EAGAIN ? 0 : for_what_has_no_event;
}

// ---- the other ranks ----

std::string endpoint::address() const {
  std::size_t length = 0;
  fi_getname(&endpoint_->fid, nullptr, &length);
  std::string name(length, '\0');
  check(fi_getname(&endpoint_->fid, name.data(), &length), "fi_getname");
  return name;
}

void endpoint::set_addresses(std::vector<std::string> addresses, int rank, bool one_host) {
  if (!one_host && (info_->caps & FI_REMOTE_COMM) == 0)
    throw wired::unavailable(protocol() +
                             " does not reach other hosts (accepted: one that does; FI_PROVIDER)");
  rank_ = rank;
  addresses_ = std::move(addresses);
  peers_.assign(addresses_.size(), FI_ADDR_UNSPEC);
  queued_.resize(addresses_.size());
}

fi_addr_t endpoint::peer(rma::rank_t of) {
  fi_addr_t& known = peers_[static_cast<std::size_t>(of)];
  if (known != FI_ADDR_UNSPEC) [[likely]]
    return known;
  const std::string& name = addresses_[static_cast<std::size_t>(of)];
  if (fi_av_insert(addresses_known_.get(), name.data(), 1, &known, 0, nullptr) != 1)
    throw wired::unavailable("libfabric cannot reach rank " + std::to_string(of) +
                             ": it refuses its address (FI_PROVIDER)");
  return known;
}

std::size_t endpoint::connections() const {
  return peers_.size() - static_cast<std::size_t>(std::ranges::count(peers_, FI_ADDR_UNSPEC));
}

// ---- packets ----

void endpoint::post_receive(receive_slot& into) {
  const ssize_t code = fi_recv(endpoint_.get(), &into.content, sizeof into.content, nullptr,
                               FI_ADDR_UNSPEC, static_cast<completion*>(&into));
  if (code == -FI_EAGAIN)
    unposted_.push_back(&into);
  else
    check(code, "fi_recv");
}

bool endpoint::try_send(rma::rank_t to, const packet& p) {
  const ssize_t code = fi_inject(endpoint_.get(), &p, sizeof p, peer(to));
  if (code == -FI_EAGAIN) return false;
  if (code != 0) set_fault(to, fi_strerror(static_cast<int>(-code)));
  return true;
}

void endpoint::send(rma::rank_t to, const packet& p) {
  if (to == rank_) return arrived(p);
  std::deque<packet>& queue = queued_[static_cast<std::size_t>(to)];
  if (queue.empty() && try_send(to, p)) return;
  // libfabric is still connecting, or has no room. The caller does not wait for that (C28).
  queue.push_back(p);
  ++queued_count_;
}

bool endpoint::send_queued() {
  bool any = false;
  for (std::size_t to = 0; to < queued_.size(); ++to) {
    std::deque<packet>& queue = queued_[to];
    for (; !queue.empty() && try_send(static_cast<rma::rank_t>(to), queue.front()); any = true) {
      queue.pop_front();
      --queued_count_;
    }
  }
  return any;
}

bool endpoint::advance() {
  const bool any = queued_count_ > 0 && send_queued();
  for (receive_slot* each : std::exchange(unposted_, {})) post_receive(*each);
  std::array<fi_cq_entry, 16> entries;
  const ssize_t found = fi_cq_read(completions_.get(), entries.data(), entries.size());
  if (found == -FI_EAGAIN) return any;
  if (found < 0) {
    handle_error();
    return true;
  }
  for (ssize_t i = 0; i < found; ++i) {
    auto* const of = static_cast<completion*>(entries[static_cast<std::size_t>(i)].op_context);
    if (of->is_receive) {
      auto& in = static_cast<receive_slot&>(*of);
      const packet got = in.content;
      post_receive(in);
      arrived(got);
    } else {
      of->done = true;
    }
  }
  return true;
}

// The link of a failed operation throws. Of a failed receive nothing is known but that its slot is
// free; of a packet that libfabric has taken and could not send, not even the receiver.
void endpoint::handle_error() {
  fi_cq_err_entry failed{};
  if (fi_cq_readerr(completions_.get(), &failed, 0) != 1) return;
  auto* const of = static_cast<completion*>(failed.op_context);
  if (of == nullptr)
    return set_fault(-1, std::string("libfabric could not send: ") + fi_strerror(failed.err));
  if (of->is_receive) return post_receive(static_cast<receive_slot&>(*of));
  of->error = failed.err;
  of->done = true;
}

void endpoint::arrived(const packet& p) {
  if (p.from < 0 || static_cast<std::size_t>(p.from) >= peers_.size()) return;  // of no rank
  switch (p.kind) {
    case packet_kind::message:
      inbox().push_back(p.content);
      break;
    case packet_kind::operation: {
      if (p.asks.index >= cells_.size())
        return set_fault(p.from, "it operates on a cell that is not there");
      packet back;
      back.kind = packet_kind::answer;
      back.from = rank_;
      back.waiter = p.waiter;
      back.result = operate(p.asks);
      send(p.from, back);
      break;
    }
    case packet_kind::answer:
      if (taker_ != nullptr) taker_->take_answer(p.waiter, p.result);
      break;
  }
}

// Sequentially consistent, as the CPU's own operations on the cell are (immediate_operations); the
// answer is sent after it has taken effect (C7).
rma::word endpoint::operate(const request& asks) {
  std::atomic<rma::word>& cell = cells_[asks.index];
  if (asks.compares) {
    rma::word before = asks.expected;
    cell.compare_exchange_strong(before, asks.value);
    return before;
  }
  switch (asks.kind) {
    case fabric::remote_kind::put:
      cell.store(asks.value);
      return 0;
    case fabric::remote_kind::get:
      return cell.load();
    case fabric::remote_kind::swap:
      return cell.exchange(asks.value);
    default:
      return cell.fetch_add(asks.value);
  }
}

// ---- memory ----

/// A rank's cells as others reach them: by its software, or registered with the provider.
class registered_cells final : public wired::detail::exposure {
 public:
  registered_cells(endpoint& of, std::byte* cells, std::size_t bytes) : of_(of) {
    of_.step([&] {
      if (std::exchange(of_.exposes_, true))
        throw wired::unavailable(
            "a run inside another one (accepted: one run or membership at a "
            "time)");
      if (of_.by_messages_)
        of_.cells_ = {reinterpret_cast<std::atomic<rma::word>*>(cells), bytes / sizeof(rma::word)};
      else
        add_to_provider(cells, bytes);
    });
  }
  ~registered_cells() override {
    of_.step([&] {
      of_.cells_ = {};
      memory_.reset();
      of_.exposes_ = false;
    });
  }

  [[nodiscard]] std::string key() const override {
    return std::string(reinterpret_cast<const char*>(&place_), sizeof place_);
  }

 private:
  void add_to_provider(std::byte* cells, std::size_t bytes) {
    const int mode = of_.info_->domain_attr->mr_mode;
    static std::uint64_t registrations = 0;  // a provider that takes keys takes each once
    memory_ = made<fid_mr>("fi_mr_reg", [&](fid_mr** to) {
      return fi_mr_reg(of_.domain_.get(), cells, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                       ++registrations, 0, to, nullptr);
    });
    if ((mode & FI_MR_ENDPOINT) != 0) {
      check(fi_mr_bind(memory_.get(), &of_.endpoint_->fid, 0), "fi_mr_bind");
      check(fi_mr_enable(memory_.get()), "fi_mr_enable");
    }
    place_.key = fi_mr_key(memory_.get());
    if ((mode & FI_MR_VIRT_ADDR) != 0) place_.address = reinterpret_cast<std::uintptr_t>(cells);
  }

  endpoint& of_;
  registered_place place_;
  owned<fid_mr> memory_;
};

std::unique_ptr<wired::detail::exposure> endpoint::expose(std::byte* cells, std::size_t bytes) {
  return std::make_unique<registered_cells>(*this, cells, bytes);
}

std::unique_ptr<fabric::network> endpoint::connect(wired::detail::world& in,
                                                   const wired::detail::segment& cells,
                                                   bool patient) {
  return std::make_unique<link>(*this, in, cells, patient);
}

}  // namespace lockflight::libfabric::detail

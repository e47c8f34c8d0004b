#include <treadle/core/distributed/communicator.h>

#include <numeric>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>
#include <treadle/core/distributed/group_errors.h>

namespace treadle {
namespace {

std::size_t sum_of(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

}  // namespace

Communicator::~Communicator() = default;

void Communicator::connect(const Rendezvous& rendezvous) {
  TREADLE_EXPECTS(
      rendezvous.world_size >= 1 && rendezvous.rank >= 0 && rendezvous.rank < rendezvous.world_size,
      "ranks are counted from 0 up to the number of processes");
  TREADLE_EXPECTS(rendezvous.timeout.count() > 0, "a call is given some time");
  TREADLE_EXPECTS(!has_joined_.exchange(true), "a communicator connects once");
  if (is_aborted_)
    throw aborted_group();
  call_plugin(*this, "connect", [&] { do_connect(rendezvous); });
  rank_ = rendezvous.rank;
  world_size_ = rendezvous.world_size;
}

void Communicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  expect_usable();
  TREADLE_EXPECTS(all.size() == mine.size() * static_cast<std::size_t>(world_size_),
                  "there is room for the bytes of every rank");
  call_plugin(*this, "all_gather", [&] { do_all_gather(mine, all); });
}

void Communicator::all_to_all(std::span<const std::byte> sent,
                              std::span<const std::size_t> sent_sizes,
                              std::span<std::byte> received,
                              std::span<const std::size_t> received_sizes) {
  expect_usable();
  const auto ranks = static_cast<std::size_t>(world_size_);
  TREADLE_EXPECTS(sent_sizes.size() == ranks && received_sizes.size() == ranks,
                  "there is one size for each rank");
  TREADLE_EXPECTS(sum_of(sent_sizes) == sent.size() && sum_of(received_sizes) == received.size(),
                  "sizes add up to the bytes there are");
  call_plugin(*this, "all_to_all",
              [&] { do_all_to_all(sent, sent_sizes, received, received_sizes); });
}

void Communicator::broadcast(std::span<std::byte> bytes, std::int64_t root) {
  expect_usable();
  TREADLE_EXPECTS(root >= 0 && root < world_size_, "the root is a rank of the group");
  call_plugin(*this, "broadcast", [&] { do_broadcast(bytes, root); });
}

void Communicator::abort() noexcept {
  if (!is_aborted_.exchange(true))
    do_abort();
}

void Communicator::expect_usable() const {
  TREADLE_EXPECTS(world_size_ > 0, "a communicator is connected first");
  if (is_aborted_)
    throw aborted_group();
}

}  // namespace treadle

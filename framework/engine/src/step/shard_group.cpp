#include <treadle/engine/shard_group.h>

#include <algorithm>
#include <array>
#include <string>

#include <treadle/base/error.h>

namespace treadle::engine {

ShardGroup::ShardGroup(Communicator& communicator, std::size_t shards)
    : communicator_(communicator), shards_(shards) {
  if (static_cast<std::size_t>(world_size()) <= shards)
    return;
  throw TrainingError(
      std::to_string(world_size()) + " processes cannot share a step of " + std::to_string(shards) +
      (shards == 1 ? " shard" : " shards") +
      ": each needs one at least; start fewer processes, or set resources.shards to " +
      std::to_string(world_size()) + " or more, which changes the results");
}

ShardRange ShardGroup::shards_of(std::int64_t rank) const {
  const auto processes = static_cast<std::size_t>(world_size());
  const auto place = static_cast<std::size_t>(rank);
  return {shards_ * place / processes, shards_ * (place + 1) / processes};
}

std::size_t ShardGroup::most_shards() const {
  const auto processes = static_cast<std::size_t>(world_size());
  return (shards_ + processes - 1) / processes;
}

void ShardGroup::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  communicator_.all_gather(mine, all);
  bytes_sent_ += static_cast<std::int64_t>(all.size() - mine.size());
}

void ShardGroup::all_to_all(std::span<const std::byte> sent,
                            std::span<const std::size_t> sent_sizes, std::span<std::byte> received,
                            std::span<const std::size_t> received_sizes) {
  communicator_.all_to_all(sent, sent_sizes, received, received_sizes);
  bytes_sent_ +=
      static_cast<std::int64_t>(sent.size() - sent_sizes[static_cast<std::size_t>(rank())]);
}

void ShardGroup::broadcast(std::span<std::byte> bytes, std::int64_t root) {
  communicator_.broadcast(bytes, root);
  if (rank() == root)
    bytes_sent_ += static_cast<std::int64_t>(bytes.size()) * (world_size() - 1);
}

std::vector<std::vector<std::byte>> ShardGroup::gather(std::span<const std::byte> mine) {
  const auto processes = static_cast<std::size_t>(world_size());
  const std::uint64_t size = mine.size();
  std::vector<std::uint64_t> sizes(processes);
  all_gather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)));
  // As if all were as long as the longest: they are few and short.
  const std::size_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::byte> padded(longest);
  std::copy(mine.begin(), mine.end(), padded.begin());
  std::vector<std::byte> all(longest * processes);
  if (longest > 0)
    all_gather(padded, all);
  std::vector<std::vector<std::byte>> parts;
  for (std::size_t i = 0; i < processes; ++i) {
    const auto part = std::span(all).subspan(i * longest, sizes[i]);
    parts.emplace_back(part.begin(), part.end());
  }
  return parts;
}

void ShardGroup::agree_on(const Signals& wishes) {
  const std::array<double, 3> mine{wishes.stop ? 1.0 : 0.0, wishes.save ? 1.0 : 0.0,
                                   wishes.seconds};
  std::vector<std::array<double, 3>> all(static_cast<std::size_t>(world_size()));
  all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  agreed_ = {false, all.front()[1] != 0, all.front()[2]};
  for (const std::array<double, 3>& of_rank : all)
    agreed_.stop = agreed_.stop || of_rank[0] != 0;
}

}  // namespace treadle::engine

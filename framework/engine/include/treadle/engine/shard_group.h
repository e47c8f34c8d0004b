#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <treadle/core/distributed/communicator.h>
#include <treadle/core/training/sum_tree.h>

namespace treadle::engine {

/// The processes that train one model together. Each has some of the shards of every step, one
/// behind the other, and a whole model; all come to the same numbers.
///
/// All processes make the same calls in the same order. Facts that only one of them knows, such as
/// a user's wish to stop, are Signals, on which all agree at the next exchange. One training
/// thread.
class ShardGroup {
 public:
  /// `communicator` is connected, and outlives this. Throws a TrainingError where there are more
  /// processes than shards.
  ShardGroup(Communicator& communicator, std::size_t shards);

  std::int64_t rank() const { return communicator_.rank(); }
  std::int64_t world_size() const { return communicator_.world_size(); }
  /// Of a step, in all processes together.
  std::size_t shards() const { return shards_; }
  ShardRange own() const { return shards_of(rank()); }
  ShardRange shards_of(std::int64_t rank) const;
  /// That any rank has.
  std::size_t most_shards() const;

  struct Signals {
    bool stop = false;   ///< of any process, for all
    bool save = false;   ///< of rank 0: a checkpoint is due
    double seconds = 0;  ///< of rank 0: how long it has trained
  };
  /// For the next exchange.
  void wish(const Signals& signals) { wishes_ = signals; }
  const Signals& wishes() const { return wishes_; }
  /// The result of the last exchange.
  const Signals& agreed() const { return agreed_; }
  void agree(const Signals& signals) { agreed_ = signals; }
  /// An exchange of its own, where no step comes.
  void agree_on(const Signals& wishes);

  // As those of Communicator, and counted.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  void all_to_all(std::span<const std::byte> sent, std::span<const std::size_t> sent_sizes,
                  std::span<std::byte> received, std::span<const std::size_t> received_sizes);
  void broadcast(std::span<std::byte> bytes, std::int64_t root);
  /// The bytes of each rank, of any size.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine);

  /// That this process has sent to others.
  std::int64_t bytes_sent() const { return bytes_sent_; }

 private:
  Communicator& communicator_;
  const std::size_t shards_;
  Signals wishes_;
  Signals agreed_;
  std::int64_t bytes_sent_ = 0;
};

}  // namespace treadle::engine

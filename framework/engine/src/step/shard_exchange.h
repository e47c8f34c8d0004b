#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include <treadle/core/model/model.h>
#include <treadle/core/training/parameter_arena.h>
#include <treadle/engine/shard_group.h>

#include "step_numbers.h"

namespace treadle::engine {

/// The exchange of a step between the processes of a group, after backward and before the update:
///
/// 1. all gather a message of fixed size: losses of the shards, which gradients there are, signals,
///    whether something was thrown;
/// 2. where there is more (auxiliary losses, scales, what was thrown), all gather that;
/// 3. gradients: each process adds those of its shards as far as the tree of sums lies within them.
///    Small ones are in the first message, and each process adds the rest of the tree. Of large
///    ones a process is sent a slice of every partial sum; it adds the rest of the tree for its
///    slice, and all gather the slices. So with `W` processes and `P` bytes of gradients, each
///    sends 2 (1 - 1/W) P where each has one partial sum;
/// 4. rank 0 sends the model's buffers, which are those of the first shard.
///
/// The tree does not depend on the number of processes, and nothing but Treadle adds. One training
/// thread.
class ShardExchange {
 public:
  /// `arenas`: of this process's shards, in their order; the first is the model's. `terms`: the
  /// most that a step's loss has. All outlive this.
  ShardExchange(ShardGroup& group, Model& model, std::vector<ParameterArena*> arenas,
                std::size_t terms, ParameterArena::Ranges for_ranges);

  /// Of this process's shards.
  struct Part {
    std::int64_t step = 0;
    std::span<const ShardLoss> losses = {};
    std::exception_ptr error = nullptr;  ///< of the first shard that threw
  };
  /// Afterwards the model's arena has the gradients of all shards. Returns the losses of all.
  /// Throws what the first shard threw, in every process.
  std::vector<ShardLoss> run(const Part& part);

 private:
  /// Where the parts of a message are, in bytes.
  struct Layout {
    std::size_t touched = 0;
    std::size_t losses = 0;
    std::size_t numbers_of_shard = 0;  // rows, terms, their sums, their weights
    std::size_t gradients = 0;
    std::size_t bytes_of_sum = 0;
    std::size_t size = 0;
  };

  Layout layout() const;
  std::vector<ShardLoss> exchange(const Part& part);
  void write_message(const Part& part, std::span<const std::byte> more);
  std::vector<ShardLoss> read_losses(const std::vector<std::vector<std::byte>>& more) const;
  void read_signals(std::int64_t step) const;
  void add_own_gradients();
  void exchange_slices();
  void add_gathered();
  void send_buffers();

  ShardGroup& group_;
  Model& model_;
  const std::vector<ParameterArena*> arenas_;
  const std::size_t terms_;
  const ParameterArena::Ranges for_ranges_;
  const std::vector<std::vector<ShardRange>> sums_;  // by rank
  const bool is_small_;
  const Layout layout_;
  bool has_run_ = false;
  std::vector<std::byte> message_;
  std::vector<std::byte> messages_;  // of all ranks
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
};

}  // namespace treadle::engine

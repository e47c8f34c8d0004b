#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>

#include <treadle/core/data/batch_stream.h>
#include <treadle/core/model/model.h>

namespace treadle::engine {

/// Whether a layer GathersStatistics, or is a batch normalization of libtorch that does.
bool gathers_statistics(const Model& model);

/// Gives every such layer the statistics of the rows of `stream`, computed with the model's current
/// weights, in `precision`: the old statistics are discarded, and then each batch counts the same.
/// Weights that no step produced, such as an average, do not fit the statistics gathered in
/// training (Izmailov et al. 2018, section 3.2). What torch.optim.swa_utils.update_bn does.
///
/// The batches go through the model in training mode, without gradients; random operators draw from
/// `seed`. The mode of each layer is restored. Throws Interrupted when a stop is requested.
/// [training thread]
void refresh_statistics(Model& model, std::size_t outputs, BatchStream& stream, std::uint64_t seed,
                        std::stop_token stop, const Precision& precision = {});

}  // namespace treadle::engine

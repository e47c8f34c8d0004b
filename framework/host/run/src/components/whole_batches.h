#pragma once

#include <string>

#include <treadle/base/config.h>
#include <treadle/base/json_words.h>
#include <treadle/core/training/gradient_strategy.h>

namespace treadle::internal {

/// Fails at `slot`, which `strategy` is made of, where it would cut the batches of a loss that is
/// no sum over rows.
inline void expect_whole_batches(const GradientStrategy& strategy, const Config& slot,
                                 const std::string& loss) {
  if (!strategy.splits_batch())
    return;
  slot.fail("", "takes batches in parts, and the loss " + quote_text(loss) +
                    " is computed over whole batches; leave \"gradients\" out, or choose a loss "
                    "that is a sum over rows");
}

}  // namespace treadle::internal

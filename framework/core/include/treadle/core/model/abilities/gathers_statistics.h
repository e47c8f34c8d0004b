#pragma once

namespace treadle {

/// Has buffers that its training forward() changes, as batch normalization has running means and
/// variances (running_statistics.h). They belong to the weights in use then: for weights that no
/// step produced, such as an average, they are gathered anew.
class GathersStatistics {
 public:
  virtual ~GathersStatistics();
  /// Forgets them. Up to end_gathering() every training forward() counts the same, whatever the
  /// momentum of ordinary training, and one thread calls it. They then are those of the weights and
  /// the batches, whatever they were before.
  virtual void begin_gathering() = 0;
  virtual void end_gathering() = 0;
};

}  // namespace treadle

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/base/random.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/matrix_rows.h>

namespace treadle::synthetic {

/// Rows as they are made, before they become tensors.
struct MadeRows {
  std::vector<std::string> columns;
  std::vector<double> features;  ///< row-major, columns.size() numbers per row
  std::string target;
  std::vector<std::string> classes;          ///< empty for numbers
  std::vector<std::int64_t> target_classes;  ///< one per row, where there are classes
  std::vector<double> target_numbers;        ///< one per row, where there are none
  bool is_series = false;                    ///< the rows' order is that of time
  std::vector<std::int64_t> groups;          ///< one per row, or empty
};

/// A data provider that makes its rows up, from the parameter "seed", else from the run's: when it
/// is opened or, where the parameter "rows" is "endless", as a stream, a chunk at a time. Derived
/// classes define the rows. State: the seed, so that a model is evaluated on the rows it was
/// trained with.
class SyntheticData : public DataProvider {
 public:
  ~SyntheticData() override;

 protected:
  /// `component` is the provider's name.
  SyntheticData(const Config& config, std::string component);

  const std::string& component() const { return component_; }
  /// How many rows make_rows() is to make: the parameter "rows", or those of one chunk.
  static std::int64_t row_count(const Config& config, std::int64_t usual);
  /// Whether chunks are made: each must be rows like all others, and no copy of another.
  bool is_endless() const { return is_endless_; }

 private:
  class Endless;

  /// Makes the rows: the same ones from the same bits. Called from any thread.
  virtual MadeRows make_rows(RandomBits bits) const = 0;

  void do_open(const OpenRequest& request) final;
  MatrixRows::Matrices matrices_of(MadeRows made) const;
  const DataSpec& do_spec() const final { return rows_->spec(); }
  std::string do_content_hash() const final;
  std::unique_ptr<BatchStream> do_stream(std::int64_t batch_size) const final;
  std::optional<std::int64_t> do_stream_rows() const final;
  StateDict do_state() const final;
  void do_load_state(const StateDict& state) final;
  void* do_ask(std::string_view interface_id) final;

  std::string component_;
  std::optional<std::uint64_t> seed_;
  bool is_endless_ = false;
  OpenRequest request_;
  std::optional<MatrixRows> rows_;  // of an endless stream the first chunk
};

/// `moons`: class "0" on an upper half circle around (0, 0), class "1" on a lower one around (1,
/// 0.5), as scikit-learn's make_moons; the classes alternate.
class Moons final : public SyntheticData {
 public:
  explicit Moons(const Config& config);

 private:
  MadeRows make_rows(RandomBits bits) const override;

  std::int64_t row_count_;
  double noise_;
};

/// `spirals`: arm c of k is r (cos a, sin a) with a = 2 pi (turns r + c / k), r in (0, 1].
class Spirals final : public SyntheticData {
 public:
  explicit Spirals(const Config& config);

 private:
  MadeRows make_rows(RandomBits bits) const override;

  std::int64_t row_count_;
  std::int64_t class_count_;
  double turns_;
  double noise_;
};

/// `friedman1`: y = 10 sin(pi x0 x1) + 20 (x2 - 0.5)^2 + 10 x3 + 5 x4 + noise (J. H. Friedman,
/// "Multivariate adaptive regression splines", 1991).
class Friedman1 final : public SyntheticData {
 public:
  explicit Friedman1(const Config& config);

 private:
  MadeRows make_rows(RandomBits bits) const override;

  std::int64_t row_count_;
  std::int64_t column_count_;
  double noise_;
};

/// `sea`: three columns uniform in [0, 10), class "1" where x0 + x1 <= theta; theta changes every
/// so many rows (W. N. Street, Y. Kim, "A streaming ensemble algorithm (SEA) for large-scale
/// classification", 2001). The group of a row is its concept, from 0.
class Sea final : public SyntheticData {
 public:
  explicit Sea(const Config& config);

 private:
  MadeRows make_rows(RandomBits bits) const override;

  std::int64_t concept_rows_;
  std::vector<double> thresholds_;
  double label_noise_;
};

/// `ar_series`: x[t] = c1 x[t-1] + … + cp x[t-p] + noise. A row has the `window` values before t,
/// the latest first, and the target x[t]; its timestamp is t.
class ArSeries final : public SyntheticData {
 public:
  explicit ArSeries(const Config& config);

 private:
  MadeRows make_rows(RandomBits bits) const override;

  std::vector<double> coefficients_;
  std::int64_t length_;
  std::int64_t window_;
  double noise_;
};

}  // namespace treadle::synthetic

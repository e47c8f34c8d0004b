#include "array_reader.h"

#include <limits>
#include <memory>
#include <set>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "chunked_rows.h"
#include "mapped_rows.h"
#include "memory_rows.h"
#include "reading.h"
#include "row_values.h"

namespace treadle::arrays {
namespace {

using ArrayPtr = std::shared_ptr<const ArrayFiles>;

/// Whether all numbers are finite as numbers of type To.
template <typename To, typename From>
bool all_fit(const std::byte* bytes, std::size_t count) {
  bool fits = true;
  if constexpr (std::is_floating_point_v<From>) {
    constexpr double kLargest = std::numeric_limits<To>::max();
    for (std::size_t i = 0; i < count; ++i)
      fits &= std::abs(static_cast<double>(number_at<From>(bytes + i * sizeof(From)))) <= kLargest;
  }
  return fits;
}

/// Opens one set of files.
class ArrayReader {
 public:
  ArrayReader(const ArrayOptions& options, const OpenRequest& request,
              const std::optional<ArrayDescription>& known)
      : options_(options), known_(known), reading_(options, request, known.has_value()) {}

  OpenedArrays open();

 private:
  ArrayPtr open_files(const Paths& paths) const;
  void open_inputs();
  PortSpec make_port(const std::string& name, const ArrayFiles& array) const;
  void check_shape(const PortSpec& port, const ArrayFiles& array) const;
  void check_column_names() const;

  void make_source(std::size_t port);
  template <typename To>
  void scan_input(std::size_t port);
  template <typename T>
  void judge(std::size_t port, std::int64_t row, std::size_t item, T value);
  void take_missing(std::size_t port, std::int64_t row, std::size_t item);
  std::string item_place(std::size_t port, std::int64_t row, std::size_t item) const;

  void read_target();
  void keep_rows();

  const ArrayOptions& options_;
  const std::optional<ArrayDescription>& known_;
  Reading reading_;
  std::vector<ArrayPtr> inputs_;    // one per port
  std::vector<at::Tensor> copies_;  // one per port: where to put the numbers, or undefined
  std::shared_ptr<ChunkCache> cache_;
  OpenedArrays opened_;
};

ArrayPtr ArrayReader::open_files(const Paths& paths) const {
  auto array = std::make_shared<const ArrayFiles>(find_files(paths));
  if (!inputs_.empty() && array->rows() != inputs_[0]->rows()) {
    throw DataError(array->shown() + ": has " + std::to_string(array->rows()) + " rows, but " +
                    inputs_[0]->shown() + " has " + std::to_string(inputs_[0]->rows()) +
                    "; every array must have something for each row");
  }
  return array;
}

PortSpec ArrayReader::make_port(const std::string& name, const ArrayFiles& array) const {
  const std::vector<std::int64_t> shape = array.row_shape();
  const auto named = options_.columns.find(name);
  const bool has_names = named != options_.columns.end();
  if (shape.size() > 1) {
    if (has_names) {
      throw DataError(array.shown() + ": \"columns\" is for tables, but rows have the shape " +
                      shape_text(shape));
    }
    return {name, shape, {}};
  }
  const std::size_t width = array.row_items();
  if (has_names && named->second.size() != width) {
    throw DataError(array.shown() + ": has " + std::to_string(width) +
                    " columns, but \"columns\" has " + std::to_string(named->second.size()) +
                    " names");
  }
  PortSpec port{name, {static_cast<std::int64_t>(width)}, {}};
  const std::string prefix = options_.inputs.size() == 1 ? "x" : name + ".x";
  for (std::size_t i = 0; i < width; ++i)
    port.columns.push_back({has_names ? named->second[i] : prefix + std::to_string(i), {}, false});
  return port;
}

void ArrayReader::check_shape(const PortSpec& port, const ArrayFiles& array) const {
  std::vector<std::int64_t> shape = array.row_shape();
  if (shape.empty())
    shape.push_back(1);
  if (shape != port.shape) {
    throw DataError(array.shown() + ": rows have the shape " + shape_text(shape) +
                    ", but the model was trained on rows of the shape " + shape_text(port.shape));
  }
}

void ArrayReader::check_column_names() const {
  for (const auto& [port, names] : options_.columns) {
    if (!known_ && !options_.inputs.contains(port)) {
      throw DataError("\"columns\" names columns of the input " + quote_text(port) +
                      ", which \"inputs\" does not name");
    }
  }
  std::set<std::string> names;
  for (const PortSpec& port : opened_.description.inputs) {
    for (const Column& column : port.columns) {
      if (!names.insert(column.name).second) {
        throw DataError("two columns are named " + quote_text(column.name) +
                        "; give each a name of its own in \"columns\"");
      }
    }
  }
}

void ArrayReader::open_inputs() {
  std::vector<PortSpec>& ports = opened_.description.inputs;
  for (const auto& [name, paths] : options_.inputs) {
    inputs_.push_back(open_files(paths));
    const ArrayFiles& array = *inputs_.back();
    if (known_) {
      check_shape(ports[inputs_.size() - 1], array);
    } else {
      ports.push_back(make_port(name, array));
    }
  }
  check_column_names();
  opened_.rows.named_by = inputs_[0];
  if (reading_.drops_rows())
    reading_.dropped.assign(static_cast<std::size_t>(inputs_[0]->rows()), 0);
}

std::string ArrayReader::item_place(std::size_t port, std::int64_t row, std::size_t item) const {
  const PortSpec& spec = opened_.description.inputs[port];
  const std::string place = inputs_[port]->place_of(row);
  if (!spec.columns.empty())
    return place + ", column " + quote_text(spec.columns[item].name) + ": ";
  std::string index;
  for (std::size_t i = spec.shape.size(); i > 0; --i) {
    const auto extent = static_cast<std::size_t>(spec.shape[i - 1]);
    index = std::to_string(item % extent) + (index.empty() ? "" : ", ") + index;
    item /= extent;
  }
  return place + ", at [" + index + "]: ";
}

void ArrayReader::take_missing(std::size_t port, std::int64_t row, std::size_t item) {
  const auto problem = [&](const std::string& remedy) {
    reading_.problems.add(
        [&] { return item_place(port, row, item) + "the value is missing (NaN)" + remedy; });
  };
  std::vector<Column>& columns = opened_.description.inputs[port].columns;
  switch (options_.missing) {
    case Missing::kDropRow:
      if (!reading_.predicts())
        return reading_.drop(row);
      return problem(
          "; a row to predict cannot be dropped, train with \"missing\": \"nan\" and the transform "
          "\"impute\"");
    case Missing::kError:
      return problem(known_ ? ""
                     : columns.empty()
                         ? "; \"missing\": \"drop_row\" leaves such rows out"
                         : "; \"missing\": \"drop_row\" leaves such rows out, \"nan\" hands them "
                           "to the transform \"impute\"");
    case Missing::kNan:
      break;
  }
  if (columns.empty())
    return problem("; \"missing\": \"nan\" is for columns of tables only");
  if (known_ && !columns[item].may_be_missing)
    return problem(", which never happened in the training data");
  columns[item].may_be_missing = true;
}

template <typename T>
void ArrayReader::judge(std::size_t port, std::int64_t row, std::size_t item, T value) {
  if (is_nan(value))
    return take_missing(port, row, item);
  const double size = std::abs(static_cast<double>(value));
  const double largest = reading_.request.dtype == at::kFloat
                             ? static_cast<double>(std::numeric_limits<float>::max())
                             : std::numeric_limits<double>::max();
  if (size <= largest)
    return;
  reading_.problems.add([&] {
    return item_place(port, row, item) + "got " + number_text(value) +
           (std::isinf(size)
                ? ": infinity cannot be trained on"
                : ", which is too large for float32; \"dtype\": \"float64\" holds more");
  });
}

template <typename To>
void ArrayReader::scan_input(std::size_t port) {
  at::Tensor& copy = copies_[port];
  const std::size_t items = inputs_[port]->row_items();
  for_each_piece(*inputs_[port], reading_.hash, [&](const PieceWalk& walk, auto number) {
    using From = decltype(number);
    const std::byte* const bytes = walk.bytes().data();
    const std::size_t count = static_cast<std::size_t>(walk.rows()) * items;
    if (!all_fit<To, From>(bytes, count)) {
      for (std::size_t i = 0; i < count; ++i) {
        judge(port, walk.first_row() + static_cast<std::int64_t>(i / items), i % items,
              number_at<From>(bytes + i * sizeof(From)));
      }
    }
    if (copy.defined()) {
      convert<From>(bytes, count,
                    copy.data_ptr<To>() + static_cast<std::size_t>(walk.first_row()) * items);
    }
  });
}

// Before anything is read: a budget that is too small is said at once.
void ArrayReader::make_source(std::size_t port) {
  const ArrayPtr& array = inputs_[port];
  std::vector<std::unique_ptr<const RowSource>>& sources = opened_.rows.inputs;
  at::Tensor& copy = copies_.emplace_back();
  switch (options_.access) {
    case Access::kMemory: {
      std::vector<std::int64_t> shape = opened_.description.inputs[port].shape;
      shape.insert(shape.begin(), array->rows());
      copy = at::empty(shape, reading_.request.dtype);
      sources.push_back(std::make_unique<MemoryRows>(copy));
      break;
    }
    case Access::kMapped:
      sources.push_back(std::make_unique<MappedRows>(array));
      break;
    case Access::kChunked:
      if (!cache_)
        cache_ = std::make_shared<ChunkCache>(options_.resident_bytes);
      sources.push_back(std::make_unique<ChunkedRows>(array, options_.chunk_rows, cache_));
      break;
  }
}

void ArrayReader::read_target() {
  std::optional<Targets> known;
  if (known_)
    known = Targets{known_->target, known_->labels, {}};
  const ArrayPtr array = open_files(options_.target);
  const std::string name =
      array->files().size() == 1 ? std::filesystem::path(array->shown()).stem().string() : "target";
  Targets targets = read_targets(*array, name, known ? &*known : nullptr, reading_);
  opened_.description.target = targets.spec;
  opened_.description.labels = std::move(targets.labels);
  opened_.rows.targets = std::move(targets.values);
  opened_.rows.spec.target = std::move(targets.spec);
}

// Leaves out the rows that are dropped.
void ArrayReader::keep_rows() {
  ArrayRows::Parts& rows = opened_.rows;
  rows.rows = inputs_[0]->rows();
  for (std::int64_t row = 0; row < rows.rows && reading_.drops_rows(); ++row) {
    if (!reading_.is_dropped(row))
      rows.kept.push_back(row);
  }
  const auto kept = static_cast<std::int64_t>(rows.kept.size());
  if (!reading_.drops_rows() || kept == rows.rows) {
    rows.kept.clear();
    return;
  }
  if (kept == 0) {
    throw DataError(inputs_[0]->shown() + ": each of the " + std::to_string(rows.rows) +
                    " rows has a missing value, and \"missing\" is \"drop_row\"");
  }
  rows.rows = kept;
  const at::Tensor index = at::from_blob(rows.kept.data(), {kept}, at::kLong);
  for (at::Tensor* per_row : {&rows.targets, &rows.weights, &rows.groups, &rows.timestamps}) {
    if (per_row->defined())
      *per_row = at::index_select(*per_row, 0, index);
  }
}

OpenedArrays ArrayReader::open() {
  ArrayRows::Parts& rows = opened_.rows;
  rows.dtype = reading_.request.dtype;
  if (known_)
    opened_.description = *known_;
  open_inputs();
  for (std::size_t port = 0; port < inputs_.size(); ++port)
    make_source(port);
  for (std::size_t port = 0; port < inputs_.size(); ++port) {
    if (rows.dtype == at::kFloat) {
      scan_input<float>(port);
    } else {
      scan_input<double>(port);
    }
  }
  if (!reading_.predicts()) {
    // The target comes last: a row that something else drops makes no class.
    if (options_.weights)
      rows.weights = read_weights(*open_files(*options_.weights), reading_);
    if (options_.groups)
      rows.groups = read_groups(*open_files(*options_.groups), reading_);
    if (options_.times)
      rows.timestamps = read_times(*open_files(*options_.times), reading_);
    read_target();
  }
  reading_.problems.throw_if_any();
  keep_rows();
  rows.spec.inputs = opened_.description.inputs;
  rows.spec.has_weights = rows.weights.defined();
  reading_.hash.update(to_json(rows.spec).dump() + std::to_string(rows.rows));
  opened_.content_hash = reading_.hash.digest();
  return std::move(opened_);
}

}  // namespace

OpenedArrays open_arrays(const ArrayOptions& options, const OpenRequest& request,
                         const std::optional<ArrayDescription>& known) {
  TREADLE_EXPECTS(request.dtype == at::kFloat || request.dtype == at::kDouble,
                  "arrays are read as float32 or float64");
  return ArrayReader(options, request, known).open();
}

}  // namespace treadle::arrays

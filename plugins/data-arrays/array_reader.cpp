#include "array_reader.h"

#include <algorithm>
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

template <typename T>
bool all_finite(const std::byte* bytes, std::size_t count) {
  bool finite = true;
  if constexpr (std::is_floating_point_v<T>) {
    for (std::size_t i = 0; i < count; ++i)
      finite &= std::abs(number_at<T>(bytes + i * sizeof(T))) <= std::numeric_limits<T>::max();
  }
  return finite;
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
  void open_input(const std::string& name, const InputOption& option);
  void open_lengths(const std::string& name, const InputOption& option);
  void take_lengths_of_others();
  PortSpec make_port(const std::string& name, const InputOption& option,
                     const ArrayFiles& array) const;
  at::ScalarType number_dtype(const ArrayFiles& array, bool has_lengths) const;
  PortSpec make_table(const std::string& name, const ArrayFiles& array) const;
  void check_shape(const PortSpec& port, const ArrayFiles& array) const;
  void check_column_names() const;
  std::int64_t length_of(std::size_t port, std::int64_t row) const;

  void make_source(std::size_t port);
  template <typename To>
  void scan_input(std::size_t port);
  void find_vocabulary(std::size_t port);
  template <typename T>
  void check_integer(std::size_t port, std::int64_t row, std::size_t item, T value);
  template <typename T>
  void check_number(std::size_t port, std::int64_t row, std::size_t item, T value);
  void take_missing(std::size_t port, std::int64_t row, std::size_t item);
  std::string item_place(std::size_t port, std::int64_t row, std::size_t item) const;

  void read_targets_of_rows();
  void keep_rows();
  void trim_targets();

  const ArrayOptions& options_;
  const std::optional<ArrayDescription>& known_;
  Reading reading_;
  std::vector<ArrayPtr> inputs_;       // one per port; lengths have their own, too
  std::vector<std::int64_t> largest_;  // one per port: of tokens
  std::vector<at::Tensor> copies_;     // one per port: where to put the numbers, or undefined
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

// Images of bytes stay bytes until they are on the device that trains.
at::ScalarType ArrayReader::number_dtype(const ArrayFiles& array, bool has_lengths) const {
  const bool are_bytes =
      array.item() == Item::kUint8 && array.row_shape().size() >= 2 && !has_lengths;
  return are_bytes ? at::kByte : number_dtype_of(array.item());
}

PortSpec ArrayReader::make_port(const std::string& name, const InputOption& option,
                                const ArrayFiles& array) const {
  const std::vector<std::int64_t> shape = array.row_shape();
  PortSpec port{name, shape, {}, Role::kFeatures, number_dtype(array, option.lengths.has_value())};
  const auto refuse = [&](const char* what) {
    throw DataError(array.shown() + ": " + what + ", got rows of the shape " + shape_text(shape) +
                    " and type " + std::string(name_of(array.item())));
  };
  switch (option.role) {
    case RoleAsked::kTokens:
      port.role = Role::kTokens;
      port.vocabulary_size = option.vocabulary_size;
      break;
    case RoleAsked::kSegments:
      port.role = Role::kSegments;
      break;
    case RoleAsked::kMask:
      port.role = Role::kMask;
      port.dtype = at::kBool;
      break;
    case RoleAsked::kImage:
      if (shape.size() != 3)
        refuse("an image has the shape (channels, height, width)");
      port.role = Role::kImage;
      return port;
    case RoleAsked::kFeatures:
    case RoleAsked::kAuto:
      if (shape.size() <= 1 && !option.lengths)
        return make_table(name, array);
      if (options_.columns.contains(name)) {
        throw DataError(array.shown() + ": \"columns\" is for tables, but rows have the shape " +
                        shape_text(shape));
      }
      return port;
  }
  if (!is_integer(array.item()))
    refuse("tokens, masks and segments are integers");
  if (port.role != Role::kMask)
    port.dtype = at::kLong;
  return port;
}

PortSpec ArrayReader::make_table(const std::string& name, const ArrayFiles& array) const {
  const auto named = options_.columns.find(name);
  const bool has_names = named != options_.columns.end();
  const std::size_t width = array.row_items();
  if (has_names && named->second.size() != width) {
    throw DataError(array.shown() + ": has " + std::to_string(width) +
                    " columns, but \"columns\" has " + std::to_string(named->second.size()) +
                    " names");
  }
  PortSpec port{
      name, {static_cast<std::int64_t>(width)}, {}, Role::kFeatures, number_dtype_of(array.item())};
  const std::string prefix = options_.inputs.size() == 1 ? "x" : name + ".x";
  for (std::size_t i = 0; i < width; ++i)
    port.columns.push_back({has_names ? named->second[i] : prefix + std::to_string(i), {}});
  return port;
}

void ArrayReader::check_shape(const PortSpec& port, const ArrayFiles& array) const {
  std::vector<std::int64_t> shape = array.row_shape();
  if (shape.empty() && !port.shape.empty())
    shape.push_back(1);
  if (shape.size() == port.shape.size() && !shape.empty() && port.shape[0] == kVaries)
    shape[0] = kVaries;
  const bool is_numbers = port.role == Role::kFeatures || port.role == Role::kImage;
  if (shape != port.shape || (!is_numbers && !is_integer(array.item()))) {
    throw DataError(array.shown() + ": rows have the shape " + shape_text(array.row_shape()) +
                    (shape != port.shape ? "" : " and type " + std::string(name_of(array.item()))) +
                    ", but the model was trained on rows of the shape " + shape_text(port.shape) +
                    (shape != port.shape ? "" : " and integers"));
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
  for (const auto& [name, option] : options_.inputs) {
    open_input(name, option);
    if (option.lengths)
      open_lengths(name, option);
  }
  take_lengths_of_others();
  check_column_names();
  if (known_ && inputs_.size() != opened_.description.inputs.size()) {
    throw DataError("\"inputs\" has " + std::to_string(inputs_.size()) +
                    " arrays, lengths included, but the model was trained on " +
                    std::to_string(opened_.description.inputs.size()));
  }
  opened_.rows.named_by = inputs_[0];
  if (reading_.drops_rows())
    reading_.dropped.assign(static_cast<std::size_t>(inputs_[0]->rows()), 0);
}

void ArrayReader::open_input(const std::string& name, const InputOption& option) {
  std::vector<PortSpec>& ports = opened_.description.inputs;
  inputs_.push_back(open_files(option.paths));
  opened_.rows.lengths.emplace_back();
  const ArrayFiles& array = *inputs_.back();
  if (!known_) {
    ports.push_back(make_port(name, option, array));
  } else if (inputs_.size() > ports.size() || ports[inputs_.size() - 1].name != name) {
    throw DataError(array.shown() + ": the model was trained without an input " + quote_text(name));
  } else {
    PortSpec& port = ports[inputs_.size() - 1];
    check_shape(port, array);
    if (port.role == Role::kFeatures || port.role == Role::kImage)
      port.dtype = number_dtype(array, port.shape.front() == kVaries);
  }
}

void ArrayReader::open_lengths(const std::string& name, const InputOption& option) {
  std::vector<PortSpec>& ports = opened_.description.inputs;
  const std::size_t owner = inputs_.size() - 1;
  const ArrayPtr of = inputs_[owner];
  if (of->row_shape().empty()) {
    throw DataError(of->shown() +
                    ": has one number per row; \"lengths\" is for rows of several "
                    "positions");
  }
  inputs_.push_back(open_files(*option.lengths));
  at::Tensor lengths = read_lengths(*inputs_.back(), of->row_shape()[0], *of, reading_);
  opened_.rows.lengths[owner] = lengths;
  opened_.rows.lengths.emplace_back();
  if (!known_) {
    ports[owner].shape[0] = kVaries;
    ports.push_back({name + ".lengths", {}, {}, Role::kLengths, at::kLong, 0, name});
  } else if (inputs_.size() > ports.size() || ports[inputs_.size() - 1].role != Role::kLengths) {
    throw DataError(inputs_.back()->shown() + ": the model was trained without lengths of " +
                    quote_text(name));
  }
}

// Masks and segments have the positions of the input they describe.
void ArrayReader::take_lengths_of_others() {
  std::vector<PortSpec>& ports = opened_.description.inputs;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    PortSpec& port = ports[i];
    if (port.role != Role::kMask && port.role != Role::kSegments)
      continue;
    std::vector<std::size_t> owners;
    for (std::size_t j = 0; j < inputs_.size(); ++j) {
      const bool is_own = ports[j].role != Role::kMask && ports[j].role != Role::kSegments &&
                          ports[j].role != Role::kLengths;
      const std::string& of = known_ ? port.of : options_.inputs.at(port.name).of;
      if (is_own && (of.empty() || of == ports[j].name))
        owners.push_back(j);
    }
    if (owners.size() != 1) {
      throw DataError(inputs_[i]->shown() + ": input " + quote_text(port.name) +
                      " describes another one, which \"of\" must name");
    }
    port.of = ports[owners[0]].name;
    if (!opened_.rows.lengths[owners[0]].defined())
      continue;
    if (inputs_[i]->row_shape().empty() ||
        inputs_[i]->row_shape()[0] != inputs_[owners[0]]->row_shape()[0]) {
      throw DataError(inputs_[i]->shown() + ": rows have the shape " +
                      shape_text(inputs_[i]->row_shape()) + ", but those of " +
                      inputs_[owners[0]]->shown() + ", which they describe, the shape " +
                      shape_text(inputs_[owners[0]]->row_shape()));
    }
    port.shape[0] = kVaries;
    opened_.rows.lengths[i] = opened_.rows.lengths[owners[0]];
  }
}

/// How many numbers of a row are no padding.
std::int64_t ArrayReader::length_of(std::size_t port, std::int64_t row) const {
  const at::Tensor& lengths = opened_.rows.lengths[port];
  const auto items = static_cast<std::int64_t>(inputs_[port]->row_items());
  if (!lengths.defined())
    return items;
  return lengths.data_ptr<std::int64_t>()[row] * (items / inputs_[port]->row_shape()[0]);
}

std::string ArrayReader::item_place(std::size_t port, std::int64_t row, std::size_t item) const {
  const PortSpec& spec = opened_.description.inputs[port];
  const std::string place = inputs_[port]->place_of(row);
  if (!spec.columns.empty())
    return place + ", column " + quote_text(spec.columns[item].name) + ": ";
  std::string index;
  for (std::size_t i = spec.shape.size(); i > 0; --i) {
    const auto extent = static_cast<std::size_t>(inputs_[port]->row_shape()[i - 1]);
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
  const bool is_let_pass = reading_.request.missing_inputs && !columns.empty();
  switch (is_let_pass ? Missing::kNan : options_.missing) {
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
  if (known_ && !columns[item].may_be_missing && !is_let_pass)
    return problem(", which never happened in the training data");
  columns[item].may_be_missing = true;
}

template <typename T>
void ArrayReader::check_number(std::size_t port, std::int64_t row, std::size_t item, T value) {
  if (is_nan(value))
    return take_missing(port, row, item);
  if (!std::isinf(static_cast<double>(value)))
    return;
  reading_.problems.add([&] {
    return item_place(port, row, item) + "got " + number_text(value) +
           ": infinity cannot be trained on";
  });
}

// Tokens, masks and segments.
template <typename T>
void ArrayReader::check_integer(std::size_t port, std::int64_t row, std::size_t item, T value) {
  const PortSpec& spec = opened_.description.inputs[port];
  const auto number = static_cast<std::int64_t>(value);
  largest_[port] = std::max(largest_[port], number);
  const std::int64_t end = spec.role == Role::kMask     ? 2
                           : spec.role == Role::kTokens ? spec.vocabulary_size
                                                        : 0;
  if (number >= 0 && (end == 0 || number < end))
    return;
  reading_.problems.add([&] {
    return item_place(port, row, item) +
           (spec.role == Role::kMask ? "a mask is 0 or 1, got "
            : number < 0
                ? "must not be negative, got "
                : "the vocabulary has " + std::to_string(end) + " tokens from 0 on, got ") +
           std::to_string(number);
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
    constexpr bool kIsNumber = std::is_floating_point_v<To>;
    bool fits = std::is_same_v<To, std::uint8_t>;  // any byte will do
    if constexpr (kIsNumber)
      fits = all_finite<From>(bytes, count);
    const std::byte* row_bytes = bytes;
    const std::int64_t end = walk.first_row() + (fits ? 0 : walk.rows());
    for (std::int64_t row = walk.first_row(); row < end; ++row, row_bytes += items * sizeof(From)) {
      const auto real = static_cast<std::size_t>(length_of(port, row));
      for (std::size_t item = 0; item < real; ++item) {
        const From value = number_at<From>(row_bytes + item * sizeof(From));
        if constexpr (kIsNumber) {
          check_number(port, row, item, value);
        } else {
          check_integer(port, row, item, value);
        }
      }
    }
    if (copy.defined()) {
      convert<From>(bytes, count,
                    copy.data_ptr<To>() + static_cast<std::size_t>(walk.first_row()) * items);
    }
  });
}

void ArrayReader::find_vocabulary(std::size_t port) {
  PortSpec& spec = opened_.description.inputs[port];
  if (spec.role == Role::kTokens && spec.vocabulary_size == 0)
    spec.vocabulary_size = largest_[port] + 1;
}

// Before anything is read: a budget that is too small is said at once.
void ArrayReader::make_source(std::size_t port) {
  const ArrayPtr& array = inputs_[port];
  std::vector<std::unique_ptr<const RowSource>>& sources = opened_.rows.inputs;
  at::Tensor& copy = copies_.emplace_back();
  largest_.push_back(0);
  const PortSpec& spec = opened_.description.inputs[port];
  if (spec.role == Role::kLengths) {
    sources.push_back(std::make_unique<MemoryRows>(opened_.rows.lengths[port - 1]));
    return;
  }
  switch (options_.access) {
    case Access::kMemory: {
      std::vector<std::int64_t> shape = array->row_shape();
      shape.insert(shape.begin(), array->rows());
      copy = at::empty(shape, spec.dtype);
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

void ArrayReader::read_targets_of_rows() {
  ArrayRows::Parts& rows = opened_.rows;
  const std::vector<PortSpec>& ports = opened_.description.inputs;
  if (known_ && known_->targets.size() != options_.targets.size()) {
    throw DataError("\"target\" has " + std::to_string(options_.targets.size()) +
                    " targets, but the model was trained with " +
                    std::to_string(known_->targets.size()));
  }
  for (std::size_t i = 0; i < options_.targets.size(); ++i) {
    const TargetOption& option = options_.targets[i];
    const ArrayPtr array = open_files(option.paths);
    std::optional<Targets> known;
    if (known_)
      known = Targets{known_->targets[i], known_->labels[i], {}, {}};
    std::string name = option.name;
    if (name.empty()) {
      name = array->files().size() == 1 ? std::filesystem::path(array->shown()).stem().string()
                                        : "target";
    }
    const ArrayPtr weights = option.weights ? open_files(*option.weights) : nullptr;
    TargetRequest request{array, std::move(name), option, known ? &*known : nullptr,
                          {},    weights.get()};
    const std::string& padded_like = known ? known->spec.padded_like : option.padded_like;
    if (!padded_like.empty()) {
      const auto owner = std::find_if(ports.begin(), ports.end(), [&](const PortSpec& port) {
        return port.name == padded_like;
      });
      const auto port = static_cast<std::size_t>(owner - ports.begin());
      if (owner == ports.end() || owner->is_auxiliary() || !rows.lengths[port].defined()) {
        throw DataError(array->shown() + ": target " + quote_text(request.name) +
                        " is padded like " + quote_text(padded_like) +
                        ", which is no input with \"lengths\"");
      }
      request.lengths = rows.lengths[port];
      if (array->row_shape().empty() || array->row_shape()[0] != inputs_[port]->row_shape()[0]) {
        throw DataError(array->shown() + ": rows have the shape " + shape_text(array->row_shape()) +
                        ", but those of " + inputs_[port]->shown() +
                        ", which the target is padded like, the shape " +
                        shape_text(inputs_[port]->row_shape()));
      }
    }
    Targets targets = read_targets(request, reading_);
    if (!known_) {
      opened_.description.targets.push_back(targets.spec);
      opened_.description.labels.push_back(std::move(targets.labels));
    }
    rows.spec.targets.push_back(std::move(targets.spec));
    rows.targets.push_back(std::move(targets.values));
    rows.target_lengths.push_back(request.lengths);
    rows.target_weights.push_back(std::move(targets.weights));
  }
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
    trim_targets();
    return;
  }
  if (kept == 0) {
    throw DataError(inputs_[0]->shown() + ": each of the " + std::to_string(rows.rows) +
                    " rows has a missing value, and \"missing\" is \"drop_row\"");
  }
  rows.rows = kept;
  const at::Tensor index = at::from_blob(rows.kept.data(), {kept}, at::kLong);
  const auto keep = [&](at::Tensor& per_row) {
    if (per_row.defined())
      per_row = at::index_select(per_row, 0, index);
  };
  for (at::Tensor* per_row : {&rows.weights, &rows.groups, &rows.timestamps, &rows.label_ends})
    keep(*per_row);
  for (at::Tensor& target : rows.targets)
    keep(target);
  for (at::Tensor& lengths : rows.target_lengths)
    keep(lengths);
  for (at::Tensor& weights : rows.target_weights)
    keep(weights);
  trim_targets();
}

// All rows together are padded to the longest of them.
void ArrayReader::trim_targets() {
  ArrayRows::Parts& rows = opened_.rows;
  for (std::size_t i = 0; i < rows.targets.size(); ++i) {
    if (!rows.target_lengths[i].defined())
      continue;
    const auto longest =
        std::max<std::int64_t>(rows.target_lengths[i].max().item<std::int64_t>(), 1);
    for (at::Tensor* per_position : {&rows.targets[i], &rows.target_weights[i]}) {
      if (per_position->defined())
        *per_position = per_position->narrow(1, 0, longest).contiguous();
    }
  }
}

OpenedArrays ArrayReader::open() {
  ArrayRows::Parts& rows = opened_.rows;
  if (known_)
    opened_.description = *known_;
  open_inputs();
  for (std::size_t port = 0; port < inputs_.size(); ++port)
    make_source(port);
  for (std::size_t port = 0; port < inputs_.size(); ++port) {
    const PortSpec& spec = opened_.description.inputs[port];
    if (spec.role == Role::kLengths)
      continue;  // have been read
    if (spec.dtype == at::kByte) {
      scan_input<std::uint8_t>(port);
    } else if (spec.dtype == at::kFloat) {
      scan_input<float>(port);
    } else if (spec.dtype == at::kDouble) {
      scan_input<double>(port);
    } else if (spec.dtype == at::kLong) {
      scan_input<std::int64_t>(port);
    } else {
      scan_input<bool>(port);
    }
    find_vocabulary(port);
  }
  if (!reading_.predicts()) {
    // The target comes last: a row that something else drops makes no class.
    if (options_.weights)
      rows.weights = read_weights(open_files(*options_.weights), reading_);
    if (options_.groups)
      rows.groups = read_groups(open_files(*options_.groups), reading_);
    if (options_.times)
      rows.timestamps = read_times(open_files(*options_.times), reading_);
    if (options_.label_ends)
      rows.label_ends = read_times(open_files(*options_.label_ends), reading_);
    read_targets_of_rows();
  }
  reading_.problems.throw_if_any();
  rows.maps = std::move(reading_.maps);
  keep_rows();
  rows.spec.inputs = opened_.description.inputs;
  rows.spec.has_weights = rows.weights.defined();
  DataSpec hashed = rows.spec;  // as it was when the files had another type
  for (PortSpec& port : hashed.inputs) {
    if (c10::isFloatingType(port.dtype) || port.dtype == at::kByte)
      port.dtype = at::kFloat;
  }
  reading_.hash.update(to_json(hashed).dump() + std::to_string(rows.rows));
  opened_.content_hash = reading_.hash.digest();
  return std::move(opened_);
}

}  // namespace

OpenedArrays open_arrays(const ArrayOptions& options, const OpenRequest& request,
                         const std::optional<ArrayDescription>& known) {
  return ArrayReader(options, request, known).open();
}

}  // namespace treadle::arrays

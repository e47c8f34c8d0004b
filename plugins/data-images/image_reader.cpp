#include "image_reader.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/path_words.h>
#include <treadle/core/data/row_problems.h>

#include "parallel_rows.h"

namespace treadle::images {
namespace {

using Purpose = OpenRequest::Purpose;

/// The result of scanning one file.
struct Scanned {
  PictureSize size;
  FileStamp stamp;
  std::string hash;
  std::string problem;  ///< empty: none
};

std::string shown(PictureSize size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

/// Opens one set of images.
class ImageReader {
 public:
  ImageReader(const ImageOptions& options, const OpenRequest& request,
              const std::optional<ImageDescription>& known)
      : options_(options), request_(request), known_(known) {}

  OpenedImages open();

 private:
  bool predicts() const { return request_.purpose == Purpose::kPredict; }
  bool wants_masks() const { return !predicts() && !options_.mask_column.empty(); }
  /// A target in columns: of each data set without masks, and beside masks where it is named.
  bool wants_columns() const {
    return !predicts() && (options_.mask_column.empty() || !options_.targets.empty());
  }
  const TargetDescription* known_target(bool is_mask) const;

  void scan_images();
  void keep_whole_images();
  void choose_size();
  at::Tensor read_masks();
  void leave_out(const std::vector<std::string>& problems, at::Tensor& masks);
  void read_targets(const at::Tensor& masks);
  void read_groups();
  void add_target(ReadTarget read);
  void finish();

  const ImageOptions& options_;
  const OpenRequest& request_;
  const std::optional<ImageDescription>& known_;
  std::vector<Scanned> scanned_;          // one per row of the table
  std::vector<std::string> mask_hashes_;  // likewise
  OpenedImages opened_;
};

const TargetDescription* ImageReader::known_target(bool is_mask) const {
  if (!known_)
    return nullptr;
  for (const TargetDescription& target : known_->targets) {
    if (target.is_mask() == is_mask)
      return &target;
  }
  throw DataError(opened_.table.shown + ": the model was trained " +
                  (is_mask ? "without masks" : "with masks alone"));
}

void ImageReader::scan_images() {
  const ImageTable& table = opened_.table;
  scanned_.resize(table.rows());
  const std::int64_t most_bytes = most_bytes_of(options_.form.max_pixels);
  for_rows_in_parallel(table.rows(), [&] {
    return [&, bytes = std::vector<std::uint8_t>(), image = std::vector<std::uint8_t>(),
            maker = PictureMaker()](std::size_t row) mutable {
      Scanned& scanned = scanned_[row];
      try {
        scanned.stamp = read_file(table.files[row], most_bytes, bytes);
        scanned.hash = hash_bytes(std::as_bytes(std::span(bytes)));
        scanned.size = checked_header(bytes, options_.form.max_pixels).upright_size();
        if (options_.broken != Broken::kSkip)
          return;
        const PictureSize size = options_.form.size.value_or(scanned.size);
        image.resize(static_cast<std::size_t>(size.width * size.height) * 4);
        maker.make_image(bytes, options_.form, size, image.data());
      } catch (const BadImage& problem) {
        scanned.problem = problem.what();
      }
    };
  });
}

void ImageReader::keep_whole_images() {
  RowProblems problems;
  for (std::size_t row = 0; row < scanned_.size(); ++row) {
    if (scanned_[row].problem.empty()) {
      opened_.kept.push_back(row);
      continue;
    }
    const auto sentence = [&] {
      return opened_.table.place_of(row) + ": " + scanned_[row].problem;
    };
    if (options_.broken == Broken::kSkip && !predicts()) {
      opened_.skipped.push_back(sentence());
    } else {
      problems.add(sentence);
    }
  }
  problems.throw_if_any();
  if (opened_.kept.empty()) {
    throw DataError(opened_.table.shown + ": none of the " + std::to_string(scanned_.size()) +
                    " images can be decoded, the first: " + opened_.skipped.front());
  }
}

void ImageReader::choose_size() {
  PictureSize& size = opened_.description.size;
  const std::size_t first = opened_.kept.front();
  size = options_.form.size ? *options_.form.size : known_ ? known_->size : scanned_[first].size;
  if (known_ && (size != known_->size || options_.form.channels() != known_->channels)) {
    throw DataError(opened_.table.shown + ": the model was trained on images of " +
                    shown(known_->size) + " pixels and " + std::to_string(known_->channels) +
                    " channels, not " + shown(size) + " and " +
                    std::to_string(options_.form.channels()));
  }
  if (options_.form.size)
    return;
  RowProblems problems;
  for (const std::size_t row : opened_.kept) {
    if (scanned_[row].size == size)
      continue;
    problems.add([&] {
      return opened_.table.place_of(row) + ": has " + shown(scanned_[row].size) + " pixels, but " +
             (known_ ? "the model was trained on images of "
                     : shown_path(opened_.table.files[first]) + " has ") +
             shown(size) + (known_ ? "" : "; \"size\" resizes all of them");
    });
  }
  problems.throw_if_any();
}

/// int16 [kept rows, height, width], of the values in the files.
at::Tensor ImageReader::read_masks() {
  const PictureSize size = opened_.description.size;
  const std::size_t pixels = static_cast<std::size_t>(size.width * size.height);
  const std::vector<std::size_t>& kept = opened_.kept;
  const ImageTable& table = opened_.table;
  at::Tensor masks =
      at::empty({static_cast<std::int64_t>(kept.size()), size.height, size.width}, at::kShort);
  auto* const to = masks.data_ptr<std::int16_t>();
  std::vector<std::string> problems(kept.size());
  mask_hashes_.resize(table.rows());
  const std::int64_t most_bytes = most_bytes_of(options_.form.max_pixels);
  for_rows_in_parallel(kept.size(), [&] {
    return [&, bytes = std::vector<std::uint8_t>(), maker = PictureMaker()](std::size_t i) mutable {
      const std::size_t row = kept[i];
      try {
        read_file(table.masks[row], most_bytes, bytes);
        mask_hashes_[row] = hash_bytes(std::as_bytes(std::span(bytes)));
        maker.make_mask(bytes, options_.form, scanned_[row].size, size, to + i * pixels);
      } catch (const BadImage& problem) {
        problems[i] = "mask " + shown_path(table.masks[row]) + " " + problem.what();
      }
    };
  });
  leave_out(problems, masks);
  return masks;
}

void ImageReader::leave_out(const std::vector<std::string>& problems, at::Tensor& masks) {
  std::vector<std::int64_t> whole;
  RowProblems refused;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (problems[i].empty()) {
      whole.push_back(static_cast<std::int64_t>(i));
      kept.push_back(opened_.kept[i]);
      continue;
    }
    const auto sentence = [&] {
      return opened_.table.place_of(opened_.kept[i]) + ": " + problems[i];
    };
    if (options_.broken == Broken::kSkip) {
      opened_.skipped.push_back(sentence());
    } else {
      refused.add(sentence);
    }
  }
  refused.throw_if_any();
  if (kept.size() == opened_.kept.size())
    return;
  if (kept.empty())
    throw DataError(opened_.table.shown +
                    ": no mask can be decoded, the first: " + opened_.skipped.back());
  opened_.kept = std::move(kept);
  masks = at::index_select(
      masks, 0, at::from_blob(whole.data(), {static_cast<std::int64_t>(whole.size())}, at::kLong));
}

// A folder of other images has none.
void ImageReader::read_groups() {
  const ImageTable& table = opened_.table;
  const bool has_column =
      std::find(table.names.begin(), table.names.end(), options_.group_column) != table.names.end();
  if (options_.group_column.empty() || (known_ && !has_column))
    return;
  const std::vector<std::string>& texts = table.fields[table.column(options_.group_column)];
  std::vector<std::string>& names = opened_.group_names;
  names = opened_.description.groups;
  std::map<std::string, std::int64_t> numbers;
  for (const std::string& name : names)
    numbers.emplace(name, static_cast<std::int64_t>(numbers.size()));
  at::Tensor groups = at::empty({static_cast<std::int64_t>(opened_.kept.size())}, at::kLong);
  auto* group = groups.data_ptr<std::int64_t>();
  for (const std::size_t row : opened_.kept) {
    const auto [entry, is_new] =
        numbers.emplace(texts[row], static_cast<std::int64_t>(numbers.size()));
    if (is_new)
      names.push_back(texts[row]);
    *group++ = entry->second;
  }
  opened_.rows.groups = std::move(groups);
  if (!known_)
    opened_.description.groups = names;
}

void ImageReader::add_target(ReadTarget read) {
  opened_.rows.spec.targets.push_back(read.description.spec);
  opened_.description.targets.push_back(std::move(read.description));
  opened_.rows.targets.push_back(std::move(read.target));
}

void ImageReader::read_targets(const at::Tensor& masks) {
  if (wants_columns()) {
    add_target(read_target(opened_.table, opened_.kept, options_, request_, known_target(false)));
  }
  if (wants_masks())
    add_target(number_masks(masks, opened_.table, opened_.kept, options_, known_target(true)));
  if (known_)
    opened_.description.targets = known_->targets;
  read_groups();
}

void ImageReader::finish() {
  ImageRows::Parts& rows = opened_.rows;
  const ImageTable& table = opened_.table;
  rows.form = options_.form;
  rows.size = opened_.description.size;
  rows.cache_bytes = options_.cache;
  opened_.description.channels = options_.form.channels();
  rows.spec.inputs = {{"image",
                       {options_.form.channels(), rows.size.height, rows.size.width},
                       {},
                       Role::kImage,
                       at::kByte}};
  ContentHash source;
  ContentHash content;
  for (const std::size_t row : opened_.kept) {
    rows.files.push_back(table.files[row]);
    rows.stamps.push_back(scanned_[row].stamp);
    if (!table.lines.empty())
      rows.places.push_back(table.place_of(row));
    source.update(table.fields[0][row]);
    source.update(std::string_view("\0", 1));
    source.update(scanned_[row].hash);
    if (!mask_hashes_.empty())
      content.update(mask_hashes_[row]);
  }
  opened_.source_hash = source.digest();
  content.update(opened_.source_hash);
  content.update(to_json(rows.spec).dump() + std::to_string(static_cast<int>(options_.form.fit)));
  for (const ImageTarget& target : rows.targets) {
    const at::Tensor& values = target.values;
    content.update(std::span(static_cast<const std::byte*>(values.data_ptr()), values.nbytes()));
  }
  if (rows.groups.defined()) {
    content.update(
        std::span(static_cast<const std::byte*>(rows.groups.data_ptr()), rows.groups.nbytes()));
  }
  opened_.content_hash = content.digest();
}

OpenedImages ImageReader::open() {
  if (known_)
    opened_.description.groups = known_->groups;
  opened_.table = read_image_table(options_, !predicts(), wants_masks());
  if (request_.purpose == Purpose::kTrain && opened_.table.lines.empty() &&
      !options_.image_column.empty()) {
    throw DataError(opened_.table.shown +
                    ": is a folder, and \"image\" is a column of a CSV file that lists images");
  }
  scan_images();
  keep_whole_images();
  choose_size();
  at::Tensor masks;
  if (wants_masks())
    masks = read_masks();
  read_targets(masks);
  finish();
  return std::move(opened_);
}

}  // namespace

OpenedImages open_images(const ImageOptions& options, const OpenRequest& request,
                         const std::optional<ImageDescription>& known) {
  return ImageReader(options, request, known).open();
}

}  // namespace treadle::images

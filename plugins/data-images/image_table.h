#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "image_options.h"

namespace treadle::images {

/// The images of a data set with their labels and other columns. Nothing is decoded.
struct ImageTable {
  std::vector<std::filesystem::path> files;
  std::vector<std::filesystem::path> masks;  ///< one per file, or empty
  /// Columns of texts, of which the first is "path": a folder's files relative to it and their
  /// "class", or those of a list.
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> fields;  ///< [columns][rows]
  std::vector<std::int64_t> lines;               ///< of a list, where each row begins
  std::vector<std::string> folders;  ///< of a folder, those that hold the images: the classes
  std::string shown;                 ///< the folder or list, for messages

  std::size_t rows() const { return files.size(); }
  bool is_list() const { return folders.empty() && !lines.empty(); }
  /// Throws a DataError that lists the names.
  std::size_t column(const std::string& name) const;
  /// "cats/7.png", or "list.csv:3" and the path.
  std::string place_of(std::size_t row) const;
};

/// Reads a folder or a list. `needs_classes`: a folder has a folder for each class, each with
/// images; otherwise everything below it that is called like an image is taken. Files are in the
/// order of torchvision's ImageFolder: by class, then by folder, then by name, in the order of
/// bytes. Names that begin with a dot are left out. Throws DataError.
ImageTable read_image_table(const ImageOptions& options, bool needs_classes, bool needs_masks);

/// Whether a file is called .jpg, .jpeg, .png or .webp, in any case.
bool is_called_image(const std::filesystem::path& file);

}  // namespace treadle::images

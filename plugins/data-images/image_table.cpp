#include "image_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/path_words.h>

#include "list_file.h"

namespace treadle::images {
namespace {

namespace fs = std::filesystem;

/// Deeper folders are taken for a loop of links.
constexpr int kDeepest = 32;

struct FolderEntries {
  std::vector<std::string> folders;
  std::vector<std::string> images;
};

FolderEntries entries_of(const fs::path& folder) {
  FolderEntries entries;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with('.'))
      continue;
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      entries.folders.push_back(std::move(name));
    } else if (is_called_image(entry->path())) {
      entries.images.push_back(std::move(name));
    }
  }
  if (error)
    throw DataError(shown_path(folder) + ": cannot be read: " + error.message());
  std::sort(entries.folders.begin(), entries.folders.end());
  std::sort(entries.images.begin(), entries.images.end());
  return entries;
}

/// The folder `name`, relative to `root`, and those below it.
void find_folders(const fs::path& root, const std::string& name, int depth,
                  std::vector<std::string>& names) {
  if (depth > kDeepest) {
    throw DataError(shown_path(root / name) + ": is more than " + std::to_string(kDeepest) +
                    " folders deep; does a link lead back?");
  }
  names.push_back(name);
  for (const std::string& inner : entries_of(root / name).folders)
    find_folders(root, name.empty() ? inner : name + "/" + inner, depth + 1, names);
}

/// Adds the images in and below a folder.
void add_images(const fs::path& root, const std::string& name, const std::string& class_name,
                ImageTable& table) {
  std::vector<std::string> folders;
  find_folders(root, name, 0, folders);
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    for (const std::string& image : entries_of(root / folder).images) {
      table.files.push_back(root / folder / image);
      table.fields[0].push_back(folder.empty() ? image : folder + "/" + image);
      if (!class_name.empty())
        table.fields[1].push_back(class_name);
    }
  }
}

ImageTable read_folder(const fs::path& root, bool needs_classes) {
  ImageTable table;
  table.shown = shown_path(root);
  table.names = {"path"};
  if (needs_classes)
    table.names.emplace_back("class");
  table.fields.resize(table.names.size());
  if (!needs_classes) {
    add_images(root, "", "", table);
    if (table.files.empty())
      throw DataError(table.shown + ": no file below it is called .jpg, .jpeg, .png or .webp");
    return table;
  }
  table.folders = entries_of(root).folders;
  if (table.folders.empty()) {
    throw DataError(table.shown +
                    ": expected a folder for each class, with its images, and found none; a CSV "
                    "file may list images and labels instead");
  }
  for (const std::string& name : table.folders) {
    const std::size_t before = table.files.size();
    add_images(root, name, name, table);
    if (table.files.size() == before) {
      throw DataError(shown_path(root / name) +
                      ": no file in this class is called .jpg, .jpeg, .png or .webp");
    }
  }
  return table;
}

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(stream)), {});
  if (!stream.good() && !stream.eof())
    throw DataError(shown_path(file) + ": cannot be read");
  return content;
}

void add_paths(const fs::path& folder, const std::vector<std::string>& texts,
               const std::string& column, const ImageTable& table, std::vector<fs::path>& paths) {
  paths.reserve(texts.size());
  for (std::size_t row = 0; row < texts.size(); ++row) {
    if (texts[row].empty()) {
      throw DataError(table.shown + ":" + std::to_string(table.lines[row]) + ": column " +
                      quote_text(column) + ": expected the path of an image, got nothing");
    }
    paths.push_back(folder / texts[row]);
  }
}

ImageTable read_image_list(const ImageOptions& options, bool needs_masks) {
  ImageTable table;
  table.shown = shown_path(options.path);
  ListFile list = read_list(content_of(options.path), table.shown);
  if (list.rows() == 0)
    throw DataError(table.shown + ": lists no images");
  table.names = std::move(list.names);
  table.fields = std::move(list.fields);
  table.lines = std::move(list.lines);
  std::size_t images = 0;
  if (!options.image_column.empty()) {
    images = table.column(options.image_column);
  } else if (const auto found = std::find(table.names.begin(), table.names.end(), "path");
             found != table.names.end()) {
    images = static_cast<std::size_t>(found - table.names.begin());
  }
  const fs::path folder = options.path.parent_path();
  add_paths(folder, table.fields[images], table.names[images], table, table.files);
  if (needs_masks) {
    const std::size_t masks = table.column(options.mask_column);
    add_paths(folder, table.fields[masks], table.names[masks], table, table.masks);
  }
  // The images' own comes first, the others keep their order.
  const auto column = static_cast<std::ptrdiff_t>(images);
  std::rotate(table.names.begin(), table.names.begin() + column, table.names.begin() + column + 1);
  std::rotate(table.fields.begin(), table.fields.begin() + column,
              table.fields.begin() + column + 1);
  return table;
}

}  // namespace

bool is_called_image(const fs::path& file) {
  static constexpr std::array kEndings{".jpg", ".jpeg", ".png", ".webp"};
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

std::size_t ImageTable::column(const std::string& name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw DataError(shown + ": has no column " + quote_text(name) + did_you_mean(name, names) +
                    " (columns: " + name_list(names) + ")");
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::string ImageTable::place_of(std::size_t row) const {
  if (lines.empty())
    return shown_path(files[row]);
  return shown + ":" + std::to_string(lines[row]) + ": " + shown_path(files[row]);
}

ImageTable read_image_table(const ImageOptions& options, bool needs_classes, bool needs_masks) {
  std::error_code error;
  const fs::file_status status = fs::status(options.path, error);
  if (!fs::exists(status))
    throw DataError(shown_path(options.path) + ": no such folder or file");
  if (fs::is_directory(status)) {
    if (needs_masks) {
      throw DataError(shown_path(options.path) +
                      ": is a folder, and \"mask\" is a column of a CSV file that lists images");
    }
    return read_folder(options.path, needs_classes);
  }
  if (!is_called_image(options.path))
    return read_image_list(options, needs_masks);
  if (needs_classes) {
    throw DataError(shown_path(options.path) +
                    ": is an image; to train, name a folder of classes or a CSV file that lists "
                    "images");
  }
  ImageTable table;
  table.shown = shown_path(options.path);
  table.files = {options.path};
  table.names = {"path"};
  table.fields = {{options.path.filename().string()}};
  return table;
}

}  // namespace treadle::images

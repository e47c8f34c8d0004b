#include "npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::arrays {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kLongestHeader = std::size_t{1} << 20;
// NumPy's own limit until version 2; libtorch's operators have 64.
constexpr std::size_t kMostDimensions = 32;

struct ItemCode {
  std::string_view descr;
  Item item;
  std::string_view name;
};
constexpr std::array kItems{
    ItemCode{"<f4", Item::kFloat32, "float32"}, ItemCode{"<f8", Item::kFloat64, "float64"},
    ItemCode{"<i8", Item::kInt64, "int64"},     ItemCode{"<i4", Item::kInt32, "int32"},
    ItemCode{"|u1", Item::kUint8, "uint8"},
};

/// What to save an array as whose numbers are of a kind that cannot be read.
struct Remedy {
  char kind;
  std::string_view as;
};
constexpr std::array kRemedies{Remedy{'f', "<f8"}, Remedy{'i', "<i8"}, Remedy{'u', "<i8"},
                               Remedy{'b', "u1"}};

/// Reads the little of Python that a header is written in: a dictionary of texts, truth values and
/// tuples of integers.
class LiteralScanner {
 public:
  LiteralScanner(std::string_view text, const std::string& shown)
      : text_(text), rest_(text), shown_(shown) {}

  bool takes(char c) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c)
      return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!takes(c))
      fail();
  }
  bool sees(char c) {
    skip_blanks();
    return !rest_.empty() && rest_.front() == c;
  }
  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

  std::string_view text() {
    const char quote = sees('"') ? '"' : '\'';
    expect(quote);
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos)
      fail();
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return found;
  }

  bool truth_value() {
    skip_blanks();
    for (const auto& [word, value] :
         {std::pair{std::string_view("True"), true}, std::pair{std::string_view("False"), false}}) {
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    }
    fail();
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!takes(')')) {
      values.push_back(integer());
      if (!sees(')'))
        expect(',');
    }
    return values;
  }

  [[noreturn]] void fail() const {
    constexpr std::size_t kShown = 200;
    throw DataError(
        shown_ + ": the header cannot be understood: " +
        quote_text(text_.substr(0, std::min(text_.find_last_not_of(" \n") + 1, kShown))));
  }

 private:
  void skip_blanks() {
    const std::size_t first = rest_.find_first_not_of(" \n");
    rest_.remove_prefix(std::min(first, rest_.size()));
  }

  std::int64_t integer() {
    skip_blanks();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0)
      fail();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    takes('L');  // Python 2
    return value;
  }

  std::string_view text_;
  std::string_view rest_;
  const std::string& shown_;
};

Item item_of(std::string_view descr, const std::string& shown) {
  for (const ItemCode& code : kItems) {
    if (code.descr == descr)
      return code.item;
  }
  constexpr std::string_view kKnown =
      "float32, float64, int64, int32 and uint8, little-endian, can be read";
  std::string text = shown + ": the numbers are of the type " + quote_text(descr) + "; ";
  const char kind = descr.size() > 1 ? descr[1] : '\0';
  if (kind == 'O')
    throw DataError(shown +
                    ": holds Python objects; only numbers can be read: " + std::string(kKnown));
  if (kind == 'U' || kind == 'S') {
    throw DataError(shown + ": holds texts; number them, and name the numbers in \"classes\": " +
                    std::string(kKnown));
  }
  if (kind == 'f' && descr.substr(2) == "4") {
    text += "save the array as array.astype('<f4'): ";
  } else {
    for (const Remedy& remedy : kRemedies) {
      if (remedy.kind == kind)
        text += "save the array as array.astype('" + std::string(remedy.as) + "'): ";
    }
  }
  throw DataError(text + std::string(kKnown));
}

// Sizes are believed only when they can be counted.
void check_shape(const NpyHeader& header, const std::string& shown) {
  if (header.shape.empty())
    throw DataError(shown + ": holds one number; an array of rows has a shape like (1000, 20)");
  if (header.shape.size() > kMostDimensions) {
    throw DataError(shown + ": has " + std::to_string(header.shape.size()) +
                    " dimensions; at most " + std::to_string(kMostDimensions) + " can be read");
  }
  std::int64_t bytes = static_cast<std::int64_t>(size_of(header.item));
  bool has_no_items = false;
  for (std::size_t i = 0; i < header.shape.size(); ++i) {
    const std::int64_t extent = header.shape[i];
    if (i > 0 && extent == 0)
      has_no_items = true;
    if (extent > 0 && bytes > std::numeric_limits<std::int64_t>::max() / extent) {
      throw DataError(shown + ": an array of the shape " + shape_text(header.shape) +
                      " cannot be that large");
    }
    bytes *= std::max<std::int64_t>(extent, 1);
  }
  if (has_no_items && header.shape[0] > 0)
    throw DataError(shown + ": its rows are empty: the shape is " + shape_text(header.shape));
}

}  // namespace

std::string_view name_of(Item item) {
  return kItems[static_cast<std::size_t>(item)].name;
}

std::size_t NpyHeader::row_items() const {
  std::size_t items = 1;
  for (std::size_t i = 1; i < shape.size(); ++i)
    items *= static_cast<std::size_t>(shape[i]);
  return items;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

NpyPrefix read_npy_prefix(std::string_view start, const std::string& shown) {
  if (start.starts_with("PK")) {
    throw DataError(shown +
                    ": is an archive of arrays (.npz); save each array in a file of its own, with "
                    "numpy.save");
  }
  if (!start.starts_with(kMagic.substr(0, start.size())) || start.empty())
    throw DataError(shown + ": is not a NumPy array file (.npy); numpy.save writes one");
  const auto byte = [&](std::size_t i) {
    return i < start.size() ? static_cast<std::size_t>(static_cast<unsigned char>(start[i])) : 0;
  };
  const std::size_t major = byte(6);
  if (start.size() > 7 && (major < 1 || major > 3 || byte(7) != 0)) {
    throw DataError(shown + ": is of the format version " + std::to_string(major) + "." +
                    std::to_string(byte(7)) + "; versions 1.0 to 3.0 can be read");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  NpyPrefix prefix;
  prefix.text_begin = 8 + length_bytes;
  if (start.size() < prefix.text_begin)
    throw DataError(shown + ": is cut off: it ends within its header");
  for (std::size_t i = 0; i < length_bytes; ++i)
    prefix.text_size += byte(8 + i) << (8 * i);
  if (prefix.text_size > kLongestHeader) {
    throw DataError(shown + ": its header would have " + std::to_string(prefix.text_size) +
                    " bytes; it is damaged");
  }
  return prefix;
}

NpyHeader read_npy_header(std::string_view text, const NpyPrefix& prefix,
                          const std::string& shown) {
  LiteralScanner scanner(text, shown);
  std::optional<std::string_view> descr;
  std::optional<bool> is_fortran;
  std::optional<std::vector<std::int64_t>> shape;
  scanner.expect('{');
  while (!scanner.takes('}')) {
    const std::string_view key = scanner.text();
    scanner.expect(':');
    if (key == "descr" && scanner.sees('[')) {
      throw DataError(shown +
                      ": its rows are records with fields; save each field as an array of its own");
    }
    if (key == "descr") {
      descr = scanner.text();
    } else if (key == "fortran_order") {
      is_fortran = scanner.truth_value();
    } else if (key == "shape") {
      shape = scanner.tuple();
    } else {
      scanner.fail();
    }
    if (!scanner.sees('}'))
      scanner.expect(',');
  }
  if (!scanner.at_end() || !descr || !is_fortran || !shape)
    scanner.fail();
  NpyHeader header;
  header.item = item_of(*descr, shown);
  header.shape = std::move(*shape);
  header.data_offset = prefix.text_begin + prefix.text_size;
  if (*is_fortran && header.shape.size() > 1) {
    throw DataError(shown +
                    ": is stored column by column (Fortran order); save it as "
                    "numpy.ascontiguousarray(array)");
  }
  check_shape(header, shown);
  return header;
}

}  // namespace treadle::arrays

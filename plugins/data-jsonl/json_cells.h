#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle::jsonl {

/// Takes the cells of one line: an object, in which nested objects are flattened to keys such as
/// "a.b". A list is the text that it is in JSON. nlohmann's SAX interface; no document is built.
class JsonCells {
 public:
  using Json = nlohmann::json;

  virtual ~JsonCells();

  /// Reads a line. Returns the problem of the line as a sentence, or an empty text.
  std::string read(std::string_view line);

  bool null();
  bool boolean(bool value);
  bool number_integer(Json::number_integer_t value);
  bool number_unsigned(Json::number_unsigned_t value);
  bool number_float(Json::number_float_t value, const std::string& text);
  bool string(std::string& value);
  bool binary(Json::binary_t&) { return fail("expected JSON text"); }
  bool start_object(std::size_t);
  bool key(std::string& name);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error);

 protected:
  /// Ends reading the line; returns false.
  bool fail(std::string sentence);

 private:
  // The cells; false after fail(). `name` is valid for the call.
  virtual bool do_null(std::string_view name) = 0;
  virtual bool do_number(std::string_view name, double value) = 0;
  virtual bool do_integer(std::string_view name, std::int64_t value) = 0;
  virtual bool do_text(std::string_view name, std::string_view value) = 0;

  bool expects_cell();
  /// Adds to the text of the list that is being read; false outside of one.
  bool add_to_list(std::string_view text);
  void begin_in_list(std::string_view text);
  bool end_in_list(char bracket);

  std::string sentence_;
  std::string path_;                  // of the current cell
  std::vector<std::size_t> lengths_;  // of path_, in each object that is open
  std::string list_;                  // the text of a list so far
  std::size_t depth_ = 0;             // of lists and of objects within them
  bool needs_comma_ = false;          // in the list
};

}  // namespace treadle::jsonl

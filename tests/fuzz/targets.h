#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

/// The fuzz targets: each reads bytes from a stranger the way a program would, and checks what
/// the headers promise of any input. One thread.
namespace treadle::fuzz {

/// An input showed that a promise does not hold. No treadle::Error: those are answers.
class BrokenPromise : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

void promise(bool holds, const std::string& what);

/// Promises that a message can be shown and stored: not empty, UTF-8, no control characters but
/// line ends, and not longer than a terminal's worth.
void promise_readable(std::string_view message, std::size_t longest);

struct Target {
  std::string_view name;  ///< also the folder of its corpus
  void (*run)(std::string_view bytes);
};

/// In the order in which they matter. Those of one library: tensors/ has its own.
std::span<const Target> targets();

/// The bytes are a plugin's file. It is also read while it becomes shorter.
void library_notes(std::string_view bytes);
/// The bytes are a document, and overrides after it, with kSeparator in front of each.
void document(std::string_view bytes);
/// The bytes are a component's schema, kSeparator, and a document for it.
void schema(std::string_view bytes);
/// The bytes are the text of a manifest note.
void manifest(std::string_view bytes);
/// The bytes are the cache file. `@PLUGIN@` stands for the path of a plugin, `@STAMP@` for its
/// stamp.
void plugin_cache(std::string_view bytes);

/// The bytes are the result.json of a run.
void result(std::string_view bytes);
/// The bytes are a Parquet file. Only where plugins/data-parquet can be built.
void parquet(std::string_view bytes);

// Where the plugins and their libraries are there.
/// The bytes are an image's file, which becomes an image in several forms, and a mask.
void image(std::string_view bytes);
/// The bytes are an IDX file, plain or compressed.
void idx(std::string_view bytes);

// Of tensors/: they link libtorch.
/// The bytes are a safetensors file.
void safetensors(std::string_view bytes);
/// The bytes are the state.json of a state folder, kSeparator, and both of its safetensors files.
void state_folder(std::string_view bytes);
/// The bytes are a table, which documents of several kinds name.
void csv(std::string_view bytes);
/// A table in JSON Lines: as csv().
void jsonl(std::string_view bytes);
/// The bytes are a file of the tz database, a format of dates and a text in it, with kSeparator
/// between them.
void times(std::string_view bytes);
/// The bytes are an SQLite database with a table "t". Where the plugin is built.
void sqlite(std::string_view bytes);
/// The bytes are a .npy file, which is the inputs and the target.
void npy(std::string_view bytes);
/// The bytes are a file of texts, which documents of several kinds name, kSeparator, and another
/// one that a model of the first is used on.
void texts(std::string_view bytes);
/// The bytes are a text to learn tokens from, one to encode, a vocab.json, a merges.txt, and JSON
/// that is put over what a vocabulary has stored, with kSeparator between them. `@BYTES@` stands
/// for the tokens that GPT-2 has for all bytes.
void tokenizer(std::string_view bytes);
/// The bytes are an exported model.
void exported_model(std::string_view bytes);
/// The bytes are a journal of studies that processes share.
void journal(std::string_view bytes);
/// The bytes are the journal of a search in the folder of its run.
void search_journal(std::string_view bytes);
/// The bytes are what a storage has of a study: its description, the result of a job, and how the
/// study was ended, as JSON with kSeparator between them.
void study(std::string_view bytes);
/// The bytes are a search space, kSeparator, and the points that a search begins with.
void points(std::string_view bytes);
/// The bytes are what another machine wrote of a run, kSeparator, and what this one has of it.
void run_bundle(std::string_view bytes);

/// Between the parts of an input: a byte that JSON, schemas and names cannot have, and editors
/// show.
inline constexpr char kSeparator = '\x1e';

/// The parts of an input, at least one.
std::string_view take_part(std::string_view& rest);

}  // namespace treadle::fuzz
